"""The paper's evaluation, run again: a measurement for each figure, and ours beside the published numbers.

Each figure is a file of figures over the same few measurements (`measure`); `published` has what the paper says in
numbers. Where the paper compares systems, this compares policies and ways of execution of the one engine, and SparkSQL.
"""

"""The paper's evaluation, run again: a measurement for each figure, and ours beside the published numbers.

All figures use the same few measurements (`measure`); `published` has the paper's numbers. Where the paper compares
systems, this compares policies and execution modes of one engine, and SparkSQL.
"""

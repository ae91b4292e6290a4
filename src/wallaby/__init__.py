"""Wallaby: a pipelined query engine on Spark that survives lost workers by write-ahead lineage."""

__version__ = "0.1.0"

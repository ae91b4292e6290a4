"""The version of this package: driver and executors must have the same."""

__version__ = "0.1.0"

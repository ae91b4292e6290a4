"""SQL functions: how each of Catalyst's expression classes is read, and how it is computed as on Spark."""

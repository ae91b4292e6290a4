"""SQL functions: for each expression class of Catalyst's how it is read, and how it is computed as Spark does."""

"""Tables of Delta Lake and Iceberg by path, without Spark's jars: `deltalake` and `pyiceberg` choose the files."""

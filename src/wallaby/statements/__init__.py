"""SQL statements: written from typed trees, checked before anything runs, and run on DuckDB."""

"""The words of DuckDB's SQL: quoted names, typed literals, casts, and types in three languages."""

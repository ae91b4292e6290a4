"""Write TPC-DS tables and queries with DuckDB's tpcds extension: `python generator.py DIRECTORY SCALE`.

This runs as a script, in a process of its own whose PYTHONPATH has the DuckDB that the extension is made for. So it
imports nothing of the engine, and types of another DuckDB do not matter to it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import duckdb

#: Beyond this the tables of a large scale go to a file.
MEMORY = "4GB"


def extension() -> Path:
    """The extension's file, which its wheel carries for exactly one version of DuckDB."""
    import duckdb_extension_tpcds  # type: ignore[import-not-found]  # noqa: PLC0415 - only in that directory

    return next(Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension*"))


def main(directory: str, scale: str) -> None:
    """Generate, then write table by table."""
    target = Path(directory)
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        connection = duckdb.connect(str(Path(scratch) / "tpcds.duckdb"))
        connection.load_extension(str(extension()))
        connection.execute(f"set memory_limit = '{MEMORY}'")
        connection.execute(f"call dsdgen(sf = {float(scale)})")
        for (table,) in connection.execute("show tables").fetchall():
            connection.table(table).write_parquet(str(target / f"{table}.parquet"))
        queries = target / "queries"
        queries.mkdir(exist_ok=True)
        for number, text in connection.execute("select query_nr, query from tpcds_queries()").fetchall():
            (queries / f"q{number:02d}.sql").write_text(text, encoding="utf-8")
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

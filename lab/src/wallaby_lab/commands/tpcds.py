"""`wallaby tpcds`: TPC-DS data and queries, for measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import say

app = typer.Typer(help="TPC-DS data and queries.", no_args_is_help=True)

GENERATE_EXAMPLES = """
Examples:

  wallaby tpcds generate data/ds1 --scale 1     370 MB of Parquet, 99 queries

Needs DuckDB's generator: make tpcds
"""
QUERY_EXAMPLES = """
Examples:

  wallaby tpcds query data/ds1 72
"""


@app.command(epilog=GENERATE_EXAMPLES)
def generate(
    directory: Annotated[Path, typer.Argument(help="The directory for the tables and queries.")],
    scale: Annotated[float, typer.Option(help="The scale factor.")] = 1.0,
    packages: Annotated[Path, typer.Option(help="Where DuckDB's tpcds extension is installed.")] = Path(
        ".bench/tpcds"
    ),
) -> None:
    """Generate the 24 tables as Parquet files, and write the 99 queries beside them."""
    from wallaby_lab.tpcds import TABLES, generate

    target = generate(directory, packages, scale)
    for table in TABLES:
        path = target / f"{table}.parquet"
        say(f"{path}  {path.stat().st_size / (1 << 20):,.1f} MiB")


@app.command(epilog=QUERY_EXAMPLES)
def query(
    directory: Annotated[Path, typer.Argument(help="Where the tables and queries are.")],
    number: Annotated[int, typer.Argument(help="1 to 99.")],
) -> None:
    """Print the SQL text of a query."""
    from wallaby_lab.tpcds import query

    say(query(directory, number))

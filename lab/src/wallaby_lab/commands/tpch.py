"""`wallaby tpch`: TPC-H data and queries, for tests and demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wallaby.commands.terminal import say
from wallaby_lab.commands import exchange, verify

app = typer.Typer(help="TPC-H data and queries.", no_args_is_help=True)
app.command(epilog=exchange.EXAMPLES)(exchange.exchange)
app.command(epilog=verify.EXAMPLES)(verify.verify)

GENERATE_EXAMPLES = """
Examples:

  wallaby tpch generate data/sf1 --scale 1     six million lineitems, 350 MB of Parquet

  wallaby tpch generate data/tiny --scale 0.01
"""
QUERY_EXAMPLES = """
Examples:

  wallaby tpch query 6 | wallaby sql - --table lineitem=data/sf1/lineitem.parquet
"""


@app.command(epilog=GENERATE_EXAMPLES)
def generate(
    directory: Annotated[Path, typer.Argument(help="The directory for the eight tables.")],
    scale: Annotated[float, typer.Option(help="The scale factor.")] = 1.0,
) -> None:
    """Generate the eight tables as Parquet files."""
    from wallaby_lab.tpch import TABLES, generate

    target = generate(directory, scale)
    for table in TABLES:
        path = target / f"{table}.parquet"
        say(f"{path}  {path.stat().st_size / (1 << 20):,.1f} MiB")


@app.command(epilog=QUERY_EXAMPLES)
def query(number: Annotated[int, typer.Argument(help="1 to 22.")]) -> None:
    """Print the SQL text of a query."""
    from wallaby_lab.tpch import query

    say(query(number).rstrip("\n"))

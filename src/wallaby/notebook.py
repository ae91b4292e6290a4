"""SQL in notebooks: `%load_ext wallaby`, then `%%wsql` in front of a query.

    %%wsql totals
    select o_orderpriority, count(*) from orders group by 1

The query runs through the engine of the active session, which is enabled if it has none. The cell shows the first rows,
where the query ran and what cost most. A name in the first line keeps the result as a variable.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from wallaby.enabling import enable
from wallaby.engine import attached_to
from wallaby.errors import AttachError, InvalidArgumentError
from wallaby.results.result import Result


def load_ipython_extension(ipython: Any) -> None:
    """Add the magic `wsql` to a notebook or to IPython."""

    def wsql(line: str, cell: str | None = None) -> Result:
        """Run SQL through Wallaby: `%wsql select 1`, or `%%wsql [name]` in front of a cell."""
        name = line.strip() if cell is not None else ""
        result = run_sql(line if cell is None else cell)
        if name:
            if not name.isidentifier():
                raise InvalidArgumentError(
                    f"{name!r} is not a name for a variable.", fix="E.g. %%wsql totals"
                )
            ipython.push({name: result})
        return result

    ipython.register_magic_function(wsql, "line_cell", "wsql")


def run_sql(text: str) -> Result:
    """Run a query through the engine of the active session, to its end.

    Raises:
        AttachError: there is no active session.
        InvalidArgumentError: there is no query.
    """
    session = SparkSession.getActiveSession()
    if session is None:
        raise AttachError(
            "There is no active SparkSession.", fix="Make one: SparkSession.builder.getOrCreate()"
        )
    query = text.strip().removesuffix(";")
    if not query:
        raise InvalidArgumentError("The query is empty.", fix="E.g. %wsql select 1")
    engine = attached_to(session) or enable(session)
    result = engine.run(session.sql(query))
    result.arrow()
    return result

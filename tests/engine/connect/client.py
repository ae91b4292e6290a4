"""A client of Spark Connect in a process of its own: runs the snippets that it is sent, and says what they gave.

The first argument is the address of the server. Each line of standard input is a snippet as JSON; `spark` is the
session. Each line of the output is the value that the snippet gave to `answer`, or its error.
"""

import json
import sys
import traceback
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def said_of(error: Exception) -> dict[str, Any]:
    """An error as the program would see it."""
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    kind = type(error)
    return {
        "error": kind.__name__,
        "module": kind.__module__,
        "condition": condition,
        "message": str(error),
        "trace": traceback.format_exc(),
    }


def main() -> None:
    """Answer until the input ends."""
    known: dict[str, Any] = {"__name__": "__main__"}
    out = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        try:
            if "spark" not in known:
                known["spark"] = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
            exec(json.loads(line), known)
            said = {"answer": known.pop("answer", None)}
        except Exception as error:  # noqa: BLE001 - whatever it is, the test sees it
            said = said_of(error)
        print(json.dumps(said, default=str), file=out, flush=True)


main()

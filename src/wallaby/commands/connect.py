"""`wallaby connect`: a Spark Connect server whose clients use an engine."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from wallaby.commands.session import default_master, read_configuration, spark_session, step_with_page
from wallaby.commands.terminal import note, say, step
from wallaby.observe.units import counted

EXAMPLES = """
Examples:

  wallaby connect

  wallaby connect --port 0 --workers 3 --conf spark.driver.memory=4g

  SPARK_CONNECT_AUTHENTICATE_TOKEN=… wallaby connect --master spark://head:7077

A program connects with SparkSession.builder.remote("sc://localhost:15002/;token=…").
"""


def connect(
    port: Annotated[
        int | None,
        typer.Option(
            help="The port, on 127.0.0.1; 0 for any free one. Default: 15002.",
            min=0,
            max=65535,
            show_default=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="How many TaskManagers to start.", min=1, max=1024)] = 1,
    master: Annotated[
        str | None, typer.Option(help="Spark's master; default: local, with one slot per core.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", help="A setting, spark.key=value. Repeatable.")
    ] = None,
) -> None:
    """Start a Spark Connect server whose clients use Wallaby, until Ctrl-C or SIGTERM.

    It prints the address for clients, with the token if the server generated it. To set the token, set
    SPARK_CONNECT_AUTHENTICATE_TOKEN in the environment.
    """
    configuration = read_configuration(conf or [])
    # Spark Connect runs clients' Python functions under what this says when the JVM starts.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master or default_master(workers)
    step(f"starting Spark under {master} …")
    with spark_session(master, configuration, "wallaby connect") as spark:
        from wallaby.serving import TOKEN_VARIABLE, serve

        step(f"starting {counted(workers, 'TaskManager')} …")
        given = TOKEN_VARIABLE in os.environ or "spark.connect.authenticate.token" in configuration
        with serve(spark, port=port, workers=workers) as server:
            say(server.address if given else server.url)
            note(f"{counted(workers, 'TaskManager')}; Ctrl-C ends this.")
            step_with_page(server.engine, "answering clients …")
            server.wait()

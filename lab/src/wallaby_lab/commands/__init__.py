"""The commands that the lab adds to `wallaby`, a module each. What they import, they import when they run."""

from __future__ import annotations

import typer

from wallaby_lab.commands import (
    bench,
    bench_memory,
    bench_paper,
    bench_pipelines,
    chaos,
    demo,
    differential,
    predict,
    simulate,
    tpcds,
    tpch,
)


def add_to(app: typer.Typer) -> None:
    """Add the commands; `wallaby.cli` calls this by the entry point `wallaby.commands`."""
    bench.app.command(epilog=bench_paper.EXAMPLES)(bench_paper.paper)
    bench.app.command(epilog=bench_memory.EXAMPLES)(bench_memory.memory)
    bench.app.command(epilog=bench_pipelines.EXAMPLES)(bench_pipelines.pipelines)
    app.command(epilog=demo.EXAMPLES)(demo.demo)
    app.add_typer(bench.app, name="bench")
    app.add_typer(tpch.app, name="tpch")
    app.add_typer(tpcds.app, name="tpcds")
    app.command(epilog=simulate.EXAMPLES)(simulate.simulate)
    app.command(epilog=predict.EXAMPLES)(predict.predict)
    app.command(epilog=chaos.EXAMPLES)(chaos.chaos)
    app.command(epilog=differential.EXAMPLES)(differential.differential)

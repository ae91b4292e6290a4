"""What the live page costs a query: the CPU time of all processes with the page, without it, and while somebody looks.

    .venv/bin/python -m tools.measure.page                # TPC-H at scale 0.2 in small splits; some minutes
    .venv/bin/python -m tools.measure.page --rounds 20

The three take turns in one session, in an order that changes, so that a warm JVM favours none. CPU time is that of the
driver, the JVM, the TaskManagers and the control store. Whoever looks is a process of its own and does not count;
answering it does. It asks for the page of the running query as often as a browser does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

import wallaby
from wallaby.commands.session import spark_session
from wallaby.engine import Engine
from wallaby_lab import tpch

WARM_UPS = 2
#: How often a round runs each query, so that single hundredths of a second of CPU time do not count.
REPEATS = 8
#: Splits of so many bytes, so that a query has hundreds of tasks. The events of a task are what the page costs.
SPLIT = "64k"
QUERIES = (3, 9)
WAYS = ("without", "with", "looked at")
#: Asks for the page of the latest query again and again, when the server says, as the script of the page does.
LOOKER = """
import re, sys, time, urllib.error, urllib.request
address, token = sys.argv[1:]
looks, path = 0, ""
def ask(path):
    request = urllib.request.Request(address + path, headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode(), int(answer.headers["X-Wallaby-Again"])
while True:
    text, pause = ask("body/")
    time.sleep(pause / 1000)
    running = re.search(r'href="[^"]*/(query/[0-9]+)"', text)
    if running:
        time.sleep(ask("body/" + running[1])[1] / 1000)
"""


def processes(looker: int) -> list[psutil.Process]:
    """This process and all below it, but not whoever looks."""
    own = psutil.Process()
    return [own, *(each for each in own.children(recursive=True) if each.pid != looker)]


def cpu_seconds(looker: int) -> float:
    """The CPU time of all processes so far, that of ended children included."""
    return sum(sum(each.cpu_times()[:4]) for each in processes(looker))


def measure(
    spark: SparkSession, engine: Engine, rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]], int]:
    """CPU seconds and seconds of each round, by way, and the tasks of a round."""
    used: dict[str, list[float]] = {way: [] for way in WAYS}
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    page, tasks = engine.ui, 0
    for number in range(WARM_UPS + rounds):
        turn = number % len(WAYS)
        for way in (*WAYS[turn:], *WAYS[:turn]):
            engine._parts.runner.is_watched = way != "without"  # as `engine.ui` sets it
            with ExitStack() as stack:
                looker = 0
                if way == "looked at":
                    command = [sys.executable, "-c", LOOKER, page.address, page.token]
                    started = stack.enter_context(subprocess.Popen(command))  # noqa: S603 - the program above
                    stack.callback(started.kill)
                    looker = started.pid
                before, began = cpu_seconds(looker), time.perf_counter()
                tasks = 0
                for query in QUERIES * REPEATS:
                    result = engine.run(spark.sql(tpch.query(query)))
                    result.arrow()
                    tasks += result.stats.tasks
                if number >= WARM_UPS:
                    used[way].append(cpu_seconds(looker) - before)
                    taken[way].append(time.perf_counter() - began)
    return used, taken, tasks


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the live page costs a query.")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--scale", type=float, default=0.2)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        spark_session("local[3]", {"spark.driver.memory": "2g"}) as spark,
    ):
        tpch.register(spark, tpch.generate(Path(directory) / "data", given.scale))
        with wallaby.attach(spark, workers=2, threads=1, split=SPLIT, attach_timeout=300) as engine:
            used, taken, tasks = measure(spark, engine, given.rounds)
    print(
        f"{given.rounds} rounds of {tasks:,} tasks, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print("| the live page | CPU time of a round | more than without, and its standard error | seconds |")
    print("|---|---|---|---|")
    for way in WAYS:
        more = [now / before - 1 for now, before in zip(used[way], used["without"], strict=True)]
        error = statistics.stdev(more) / len(more) ** 0.5
        spread = f"{statistics.mean(more):+.2%} ± {error:.2%}" if way != "without" else ""
        print(
            f"| {way} | {statistics.median(used[way]):.2f} s | {spread} | {statistics.median(taken[way]):.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

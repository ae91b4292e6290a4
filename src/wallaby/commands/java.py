"""Find the Java that Spark would start, and check that it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wallaby.errors import WallabyError

#: The oldest Java for Spark 4.
JAVA_MIN: Final = 17
_ASK_SECONDS: Final = 30
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')
HOW_TO_INSTALL: Final = (
    f"Install a JDK, {JAVA_MIN} or newer (Debian, Ubuntu: sudo apt install openjdk-17-jdk-headless; Fedora: sudo dnf "
    "install java-21-openjdk-headless; without root: pip install install-jdk && "
    "python -c \"import jdk; print(jdk.install('17'))\"), and set JAVA_HOME if it is not on PATH."
)


class JavaError(WallabyError):
    """There is no Java that Spark can run on."""

    condition = "WALLABY_JAVA"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found."""

    path: str
    major: int
    text: str


def find_java() -> Java:
    """The Java that Spark will start: JAVA_HOME's, else the one on PATH.

    Raises:
        JavaError: there is none, it does not run, or it is too old.
    """
    home = os.environ.get("JAVA_HOME", "")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if path is None:
        raise JavaError("There is no Java on PATH and JAVA_HOME is not set.", fix=HOW_TO_INSTALL)
    try:
        asked = subprocess.run(  # noqa: S603 - the user's own Java, and no shell
            [path, "-version"], check=True, capture_output=True, text=True, timeout=_ASK_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        whose = f"JAVA_HOME={home}" if home else path
        raise JavaError(f"{whose} has no working Java: {error}.", fix=HOW_TO_INSTALL) from error
    text = asked.stderr + asked.stdout
    major = java_major(text)
    if major < JAVA_MIN:
        raise JavaError(f"{path} is Java {major}; Spark 4 needs {JAVA_MIN}.", fix=HOW_TO_INSTALL)
    return Java(path, major, text.splitlines()[0].strip())


def java_major(text: str) -> int:
    """The major version in the output of `java -version`; 0 if there is none. Before Java 9 it is the second number."""
    found = _VERSION.search(text)
    if found is None:
        return 0
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first

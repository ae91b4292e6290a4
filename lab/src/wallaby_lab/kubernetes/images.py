"""What stands for the image of a container: programs of this machine, and the entrypoint of Spark's images."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from wallaby_lab.kubernetes.status import StatusError

#: Where the scripts of Spark's images are. The decommission script is the default of Spark's setting for it.
DECOMMISSION_SCRIPT: Final = "/opt/decom.sh"
#: Where Spark is in its images.
SPARK_HOME: Final = "/opt/spark"
_EXECUTOR: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"


@dataclass(frozen=True, slots=True)
class Image:
    """An image with Spark and Python."""

    spark_home: Path
    java: str
    #: What the image's own environment has.
    environment: Mapping[str, str]

    @staticmethod
    def of_this_machine() -> Image:
        """The Python that runs, with its PySpark and its packages, and the machine's Java."""
        home = os.environ.get("JAVA_HOME")
        java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
        spark_home = Path(pyspark.__file__).parent
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "SPARK_HOME": str(spark_home),
            "LANG": "C.UTF-8",
        }
        if home:
            environment["JAVA_HOME"] = home
        return Image(spark_home, java, environment)

    def command(
        self, command: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str]
    ) -> list[str]:
        """What a container runs: its own command, or what the entrypoint makes of its arguments."""
        if command:
            at_home = re.sub(f"^{SPARK_HOME}(?=/)", str(self.spark_home), command[0])
            return [at_home, *command[1:], *arguments]
        if not arguments:
            raise StatusError(422, "Invalid", "a container without command and arguments")
        match arguments[0]:
            case "executor":
                return self._executor(environment)
            case "driver":
                return self._driver(arguments[1:], environment)
            case _:
                return list(arguments)

    def _executor(self, of: Mapping[str, str]) -> list[str]:
        prefix = "SPARK_JAVA_OPT_"
        numbers = sorted(int(key.removeprefix(prefix)) for key in of if key.startswith(prefix))
        path = (
            of.get("SPARK_EXTRA_CLASSPATH", ""),
            of.get("SPARK_CONF_DIR", ""),
            str(self.spark_home / "jars" / "*"),
        )
        return [
            self.java,
            *(of[f"{prefix}{number}"] for number in numbers),
            f"-Xms{of['SPARK_EXECUTOR_MEMORY']}",
            f"-Xmx{of['SPARK_EXECUTOR_MEMORY']}",
            "-cp", os.pathsep.join(filter(None, path)),
            _EXECUTOR,
            "--driver-url", of["SPARK_DRIVER_URL"],
            "--executor-id", of["SPARK_EXECUTOR_ID"],
            "--cores", of["SPARK_EXECUTOR_CORES"],
            "--app-id", of["SPARK_APPLICATION_ID"],
            "--hostname", of["SPARK_EXECUTOR_POD_IP"],
            "--resourceProfileId", of["SPARK_RESOURCE_PROFILE_ID"],
            "--podName", of["SPARK_EXECUTOR_POD_NAME"],
        ]  # fmt: skip

    def _driver(self, arguments: Sequence[str], of: Mapping[str, str]) -> list[str]:
        return [
            str(self.spark_home / "bin" / "spark-submit"),
            "--conf", f"spark.driver.bindAddress={of['SPARK_DRIVER_BIND_ADDRESS']}",
            "--conf", f"spark.executorEnv.SPARK_DRIVER_POD_IP={of['SPARK_DRIVER_BIND_ADDRESS']}",
            "--deploy-mode", "client",
            *arguments,
        ]  # fmt: skip

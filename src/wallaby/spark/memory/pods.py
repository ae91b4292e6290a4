"""The memory of executor pods, which Spark's settings determine: what is there beside the JVM's heap.

The kernel ends a process of a pod that exceeds its limit, most often the JVM with all that it holds. The driver's own
memory says nothing about that limit: the driver may run on another node, or outside of the cluster. So what a
TaskManager may take is computed as Spark computes the limit, and a budget that does not fit is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from wallaby.errors import AttachError

OVERHEAD = "spark.executor.memoryOverhead"
PYSPARK = "spark.executor.pyspark.memory"
#: The memory that a JVM takes beside its heap (code, threads, buffers of the network), if no more is requested.
JVM_BYTES = 200 << 20
_FACTORS = ("spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
_FACTOR = 0.1
_MINIMUM = "384m"
_BYTES = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True, slots=True)
class PodMemory:
    """The parts of an executor pod's limit that are not heap."""

    overhead_bytes: int
    #: The memory for Python, which Spark adds to pods only if it knows that the program is one of Python.
    python_bytes: int

    @staticmethod
    def of(setting: Callable[[str], str | None]) -> PodMemory:
        """Compute what Spark computes from its settings."""
        heap = spark_bytes(setting("spark.executor.memory") or "1g")
        factor = next((float(text) for key in _FACTORS if (text := setting(key))), _FACTOR)
        minimum = spark_bytes(setting("spark.executor.minMemoryOverhead") or _MINIMUM)
        overhead = spark_bytes(setting(OVERHEAD) or "") or max(int(heap * factor), minimum)
        is_python = setting("spark.kubernetes.resource.type") == "python"
        return PodMemory(overhead, spark_bytes(setting(PYSPARK) or "") if is_python else 0)

    @property
    def beside_bytes(self) -> int:
        """All that is not heap."""
        return self.overhead_bytes + self.python_bytes

    def budget(self, given_bytes: int, allowance_bytes: int, per_pod: int, share: float) -> int:
        """The budget of each TaskManager: the given one, or an equal part of this share of what is not heap.

        Raises:
            AttachError: it does not fit into the pod; the message has the setting to change and its value.
        """
        budget = given_bytes or self.python_bytes // per_pod or int(self.beside_bytes * share) // per_pod
        needed = JVM_BYTES + per_pod * (budget + allowance_bytes)
        if needed <= self.beside_bytes:
            return budget
        if not given_bytes and not self.python_bytes:  # a larger pod has a larger budget, too
            needed = int((JVM_BYTES + per_pod * allowance_bytes) / (1 - share)) + 1
        missing = -(-(needed - self.python_bytes) >> 20)
        raise AttachError(
            f"Executor pods have no room for a TaskManager: {self.beside_bytes >> 20} MiB beside the JVM's heap, "
            f"but {-(-needed >> 20)} MiB are needed for {per_pod} x ({budget >> 20} MiB and "
            f"{allowance_bytes >> 20} MiB of allowance) and the JVM. The kernel would end the pod.",
            fix=f"Set {OVERHEAD}={missing}m or more.",
            setting=OVERHEAD,
        )


def spark_bytes(text: str) -> int:
    """A size, in which a bare number means MiB; 0 if it is none."""
    match = _BYTES.fullmatch(text.strip())
    return int(match[1]) << _UNITS[match[2].lower()] if match else 0


def spark_bytes_without_unit(text: str) -> int:
    """A size, in which a bare number means bytes; 0 if it is none."""
    match = _BYTES.fullmatch(text.strip())
    return (int(match[1]) if not match[2] else spark_bytes(text)) if match else 0

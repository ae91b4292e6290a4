"""What all tests share: Spark's settings for short lives (tests/spark_conf), also in the processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "tests" / "spark_conf"))

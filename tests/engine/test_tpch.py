"""TPC-H from its SQL text, with different numbers of TaskManagers: always Spark's answer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.comparing import require_same
from tests.engine.conftest import Engines

from wallaby import tpch

#: The columns by which each query orders its answer.
ORDERS: dict[int, tuple[str, ...]] = {
    1: ("l_returnflag", "l_linestatus"),
    2: ("s_acctbal", "n_name", "s_name", "p_partkey"),
    3: ("revenue", "o_orderdate"),
    4: ("o_orderpriority",),
    5: ("revenue",),
    6: (),
    7: ("supp_nation", "cust_nation", "l_year"),
    8: ("o_year",),
    9: ("nation", "o_year"),
    10: ("revenue",),
    11: ("value",),
    12: ("l_shipmode",),
    13: ("custdist", "c_count"),
    14: (),
    15: ("s_suppkey",),
    16: ("supplier_cnt", "p_brand", "p_type", "p_size"),
    17: (),
    18: ("o_totalprice", "o_orderdate"),
    19: (),
    20: ("s_name",),
    21: ("numwait", "s_name"),
    22: ("cntrycode",),
}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_tpch_is_answered_as_by_spark(
    spark: SparkSession, engines: Engines, answers: dict[int, pa.Table], workers: int
) -> None:
    engine = engines.get(workers=workers, threads=1)
    for number, order in ORDERS.items():
        df = spark.sql(tpch.query(number))
        assert engine.fallback_reasons(df) == []
        result = engine.run(df)
        require_same(result.arrow(), answers[number], order=order)
        assert result.native
        assert result.stats["rows"] == answers[number].num_rows

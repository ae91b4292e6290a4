"""The 22 TPC-H queries as people write them with DataFrames; the answers are those of the SQL texts."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.functions import col

Query = Callable[[SparkSession], DataFrame]


def revenue_of_a_line() -> Column:
    return col("l_extendedprice") * (1 - col("l_discount"))


def named_nation(spark: SparkSession, key: str, name: str) -> DataFrame:
    return spark.table("nation").select(col("n_nationkey").alias(key), col("n_name").alias(name))


def day(text: str) -> Column:
    return F.to_date(F.lit(text))


def within(name: str, first: str, end: str) -> Column:
    return (col(name) >= day(first)) & (col(name) < day(end))


def q1(spark: SparkSession) -> DataFrame:
    rows = spark.table("lineitem").where(col("l_shipdate") <= day("1998-09-02"))
    return (
        rows.groupBy("l_returnflag", "l_linestatus")
        .agg(
            F.sum("l_quantity").alias("sum_qty"),
            F.sum("l_extendedprice").alias("sum_base_price"),
            F.sum(revenue_of_a_line()).alias("sum_disc_price"),
            F.sum(revenue_of_a_line() * (1 + col("l_tax"))).alias("sum_charge"),
            F.avg("l_quantity").alias("avg_qty"),
            F.avg("l_extendedprice").alias("avg_price"),
            F.avg("l_discount").alias("avg_disc"),
            F.count("*").alias("count_order"),
        )
        .orderBy("l_returnflag", "l_linestatus")
    )


def _europe(spark: SparkSession) -> DataFrame:
    region = spark.table("region").where("r_name = 'EUROPE'")
    nations = spark.table("nation").join(region, col("n_regionkey") == col("r_regionkey"))
    suppliers = spark.table("supplier").join(nations, col("s_nationkey") == col("n_nationkey"))
    return spark.table("partsupp").join(suppliers, col("ps_suppkey") == col("s_suppkey"))


def q2(spark: SparkSession) -> DataFrame:
    least = _europe(spark).groupBy(col("ps_partkey").alias("k")).agg(F.min("ps_supplycost").alias("least"))
    part = spark.table("part").where((col("p_size") == 15) & col("p_type").endswith("BRASS"))
    return (
        part.join(_europe(spark), col("p_partkey") == col("ps_partkey"))
        .join(least, (col("k") == col("p_partkey")) & (col("least") == col("ps_supplycost")))
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .orderBy(col("s_acctbal").desc(), "n_name", "s_name", "p_partkey")
        .limit(100)
    )


def q3(spark: SparkSession) -> DataFrame:
    customer = spark.table("customer").filter(col("c_mktsegment") == "BUILDING")
    orders = spark.table("orders").filter(col("o_orderdate") < day("1995-03-15"))
    lines = spark.table("lineitem").filter(col("l_shipdate") > day("1995-03-15"))
    return (
        customer.join(orders, col("c_custkey") == col("o_custkey"))
        .join(lines, col("l_orderkey") == col("o_orderkey"))
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(F.sum(revenue_of_a_line()).alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy(F.desc("revenue"), "o_orderdate")
        .limit(10)
    )


def q4(spark: SparkSession) -> DataFrame:
    late = spark.table("lineitem").where("l_commitdate < l_receiptdate")
    orders = spark.table("orders").where(within("o_orderdate", "1993-07-01", "1993-10-01"))
    found = orders.join(late, col("o_orderkey") == col("l_orderkey"), "left_semi")
    counted = found.groupBy("o_orderpriority").agg(F.count("*").alias("order_count"))
    return counted.orderBy("o_orderpriority")


def q5(spark: SparkSession) -> DataFrame:
    orders = spark.table("orders").where(within("o_orderdate", "1994-01-01", "1995-01-01"))
    same_nation = (col("l_suppkey") == col("s_suppkey")) & (col("c_nationkey") == col("s_nationkey"))
    return (
        spark.table("customer")
        .join(orders, col("c_custkey") == col("o_custkey"))
        .join(spark.table("lineitem"), col("l_orderkey") == col("o_orderkey"))
        .join(spark.table("supplier"), same_nation)
        .join(spark.table("nation"), col("s_nationkey") == col("n_nationkey"))
        .join(spark.table("region").where("r_name = 'ASIA'"), col("n_regionkey") == col("r_regionkey"))
        .groupBy("n_name")
        .agg(F.sum(revenue_of_a_line()).alias("revenue"))
        .sort(F.desc("revenue"))
    )


def q6(spark: SparkSession) -> DataFrame:
    rows = spark.table("lineitem").where(within("l_shipdate", "1994-01-01", "1995-01-01"))
    chosen = rows.where("l_discount between 0.05 and 0.07").where(col("l_quantity") < 24)
    return chosen.agg(F.sum(col("l_extendedprice") * col("l_discount")).alias("revenue"))


def q7(spark: SparkSession) -> DataFrame:
    pair = (col("supp_nation"), col("cust_nation"))
    either = ((pair[0] == "FRANCE") & (pair[1] == "GERMANY")) | (
        (pair[0] == "GERMANY") & (pair[1] == "FRANCE")
    )
    return (
        spark.table("supplier")
        .join(spark.table("lineitem"), col("s_suppkey") == col("l_suppkey"))
        .join(spark.table("orders"), col("o_orderkey") == col("l_orderkey"))
        .join(spark.table("customer"), col("c_custkey") == col("o_custkey"))
        .join(named_nation(spark, "k1", "supp_nation"), col("s_nationkey") == col("k1"))
        .join(named_nation(spark, "k2", "cust_nation"), col("c_nationkey") == col("k2"))
        .where(either & col("l_shipdate").between(day("1995-01-01"), day("1996-12-31")))
        .withColumn("l_year", F.year("l_shipdate"))
        .groupBy("supp_nation", "cust_nation", "l_year")
        .agg(F.sum(revenue_of_a_line()).alias("revenue"))
        .orderBy("supp_nation", "cust_nation", "l_year")
    )


def q8(spark: SparkSession) -> DataFrame:
    america = spark.table("nation").join(
        spark.table("region").where("r_name = 'AMERICA'"), col("n_regionkey") == col("r_regionkey")
    )
    orders = spark.table("orders").where(col("o_orderdate").between(day("1995-01-01"), day("1996-12-31")))
    volume = F.when(col("nation") == "BRAZIL", col("volume")).otherwise(0)
    return (
        spark.table("part")
        .where(col("p_type") == "ECONOMY ANODIZED STEEL")
        .join(spark.table("lineitem"), col("p_partkey") == col("l_partkey"))
        .join(spark.table("supplier"), col("s_suppkey") == col("l_suppkey"))
        .join(orders, col("l_orderkey") == col("o_orderkey"))
        .join(spark.table("customer"), col("o_custkey") == col("c_custkey"))
        .join(america.select(col("n_nationkey").alias("k1")), col("c_nationkey") == col("k1"))
        .join(named_nation(spark, "k2", "nation"), col("s_nationkey") == col("k2"))
        .select(F.year("o_orderdate").alias("o_year"), revenue_of_a_line().alias("volume"), "nation")
        .groupBy("o_year")
        .agg((F.sum(volume) / F.sum("volume")).alias("mkt_share"))
        .orderBy("o_year")
    )


def q9(spark: SparkSession) -> DataFrame:
    supplied = (col("ps_suppkey") == col("l_suppkey")) & (col("ps_partkey") == col("l_partkey"))
    amount = revenue_of_a_line() - col("ps_supplycost") * col("l_quantity")
    return (
        spark.table("part")
        .where(col("p_name").contains("green"))
        .join(spark.table("lineitem"), col("p_partkey") == col("l_partkey"))
        .join(spark.table("supplier"), col("s_suppkey") == col("l_suppkey"))
        .join(spark.table("partsupp"), supplied)
        .join(spark.table("orders"), col("o_orderkey") == col("l_orderkey"))
        .join(spark.table("nation"), col("s_nationkey") == col("n_nationkey"))
        .select(col("n_name").alias("nation"), F.year("o_orderdate").alias("o_year"), amount.alias("amount"))
        .groupBy("nation", "o_year")
        .agg(F.sum("amount").alias("sum_profit"))
        .orderBy("nation", F.desc("o_year"))
    )


def q10(spark: SparkSession) -> DataFrame:
    keys = ("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
    return (
        spark.table("customer")
        .join(spark.table("orders"), col("c_custkey") == col("o_custkey"))
        .join(spark.table("lineitem"), col("l_orderkey") == col("o_orderkey"))
        .join(spark.table("nation"), col("c_nationkey") == col("n_nationkey"))
        .where(within("o_orderdate", "1993-10-01", "1994-01-01") & (col("l_returnflag") == "R"))
        .groupBy(*keys)
        .agg(F.sum(revenue_of_a_line()).alias("revenue"))
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .orderBy(F.desc("revenue"))
        .limit(20)
    )


def q11(spark: SparkSession) -> DataFrame:
    germany = spark.table("nation").where("n_name = 'GERMANY'")
    suppliers = spark.table("supplier").join(germany, col("s_nationkey") == col("n_nationkey"))
    stock = spark.table("partsupp").join(suppliers, col("ps_suppkey") == col("s_suppkey"))
    value = F.sum(col("ps_supplycost") * col("ps_availqty"))
    least = stock.agg((value * F.expr("0.0001")).alias("least"))
    parts = stock.groupBy("ps_partkey").agg(value.alias("value"))
    return (
        parts.crossJoin(least)
        .where(col("value") > col("least"))
        .select("ps_partkey", "value")
        .orderBy(F.desc("value"))
    )


def q12(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem").where(
        col("l_shipmode").isin("MAIL", "SHIP")
        & (col("l_commitdate") < col("l_receiptdate"))
        & (col("l_shipdate") < col("l_commitdate"))
        & within("l_receiptdate", "1994-01-01", "1995-01-01")
    )
    high = col("o_orderpriority").isin("1-URGENT", "2-HIGH")
    return (
        spark.table("orders")
        .join(lines, col("o_orderkey") == col("l_orderkey"))
        .groupBy("l_shipmode")
        .agg(
            F.sum(F.when(high, 1).otherwise(0)).alias("high_line_count"),
            F.sum(F.when(~high, 1).otherwise(0)).alias("low_line_count"),
        )
        .orderBy("l_shipmode")
    )


def q13(spark: SparkSession) -> DataFrame:
    orders = spark.table("orders").where(~col("o_comment").like("%special%requests%"))
    return (
        spark.table("customer")
        .join(orders, col("c_custkey") == col("o_custkey"), "left")
        .groupBy("c_custkey")
        .agg(F.count("o_orderkey").alias("c_count"))
        .groupBy("c_count")
        .agg(F.count("*").alias("custdist"))
        .orderBy(F.desc("custdist"), F.desc("c_count"))
    )


def q14(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem").where(within("l_shipdate", "1995-09-01", "1995-10-01"))
    promoted = F.when(col("p_type").startswith("PROMO"), revenue_of_a_line()).otherwise(0)
    share = F.expr("100.00") * F.sum(promoted) / F.sum(revenue_of_a_line())
    return lines.join(spark.table("part"), col("l_partkey") == col("p_partkey")).agg(
        share.alias("promo_revenue")
    )


def q15(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem").where(within("l_shipdate", "1996-01-01", "1996-04-01"))
    revenue = lines.groupBy(col("l_suppkey").alias("supplier_no")).agg(
        F.sum(revenue_of_a_line()).alias("total_revenue")
    )
    best = revenue.agg(F.max("total_revenue").alias("best"))
    return (
        spark.table("supplier")
        .join(revenue, col("s_suppkey") == col("supplier_no"))
        .join(best, col("total_revenue") == col("best"))
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .orderBy("s_suppkey")
    )


def q16(spark: SparkSession) -> DataFrame:
    complained = spark.table("supplier").where(col("s_comment").like("%Customer%Complaints%"))
    part = spark.table("part").where(
        (col("p_brand") != "Brand#45")
        & ~col("p_type").startswith("MEDIUM POLISHED")
        & col("p_size").isin(49, 14, 23, 45, 19, 3, 36, 9)
    )
    return (
        spark.table("partsupp")
        .join(part, col("p_partkey") == col("ps_partkey"))
        .join(complained, col("ps_suppkey") == col("s_suppkey"), "left_anti")
        .groupBy("p_brand", "p_type", "p_size")
        .agg(F.countDistinct("ps_suppkey").alias("supplier_cnt"))
        .orderBy(F.desc("supplier_cnt"), "p_brand", "p_type", "p_size")
    )


def q17(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem")
    usual = lines.groupBy(col("l_partkey").alias("k")).agg(
        (F.expr("0.2") * F.avg("l_quantity")).alias("usual")
    )
    part = spark.table("part").where("p_brand = 'Brand#23' and p_container = 'MED BOX'")
    return (
        lines.join(part, col("p_partkey") == col("l_partkey"))
        .join(usual, (col("k") == col("p_partkey")) & (col("l_quantity") < col("usual")))
        .agg((F.sum("l_extendedprice") / F.expr("7.0")).alias("avg_yearly"))
    )


def q18(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem")
    large = lines.groupBy(col("l_orderkey").alias("k")).agg(F.sum("l_quantity").alias("q")).where("q > 300")
    return (
        spark.table("orders")
        .join(large, col("o_orderkey") == col("k"), "left_semi")
        .join(spark.table("customer"), col("c_custkey") == col("o_custkey"))
        .join(lines, col("o_orderkey") == col("l_orderkey"))
        .groupBy("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
        .agg(F.sum("l_quantity"))
        .orderBy(F.desc("o_totalprice"), "o_orderdate")
        .limit(100)
    )


def q19(spark: SparkSession) -> DataFrame:
    def wanted(brand: str, containers: list[str], least: int, size: int) -> Column:
        return (
            (col("p_brand") == brand)
            & col("p_container").isin(containers)
            & col("l_quantity").between(least, least + 10)
            & col("p_size").between(1, size)
        )

    either = (
        wanted("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 5)
        | wanted("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 10)
        | wanted("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 15)
    )
    by_air = col("l_shipmode").isin("AIR", "AIR REG") & (col("l_shipinstruct") == "DELIVER IN PERSON")
    joined = spark.table("lineitem").join(spark.table("part"), col("p_partkey") == col("l_partkey"))
    return joined.where(by_air & either).agg(F.sum(revenue_of_a_line()).alias("revenue"))


def q20(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem").where(within("l_shipdate", "1994-01-01", "1995-01-01"))
    sold = lines.groupBy("l_partkey", "l_suppkey").agg((F.expr("0.5") * F.sum("l_quantity")).alias("half"))
    forest = spark.table("part").where(col("p_name").startswith("forest"))
    enough = (col("l_partkey") == col("ps_partkey")) & (col("l_suppkey") == col("ps_suppkey"))
    stock = (
        spark.table("partsupp")
        .join(forest, col("ps_partkey") == col("p_partkey"), "left_semi")
        .join(sold, enough & (col("ps_availqty") > col("half")))
    )
    canada = spark.table("nation").where("n_name = 'CANADA'")
    return (
        spark.table("supplier")
        .join(canada, col("s_nationkey") == col("n_nationkey"))
        .join(stock, col("s_suppkey") == col("ps_suppkey"), "left_semi")
        .select("s_name", "s_address")
        .orderBy("s_name")
    )


def q21(spark: SparkSession) -> DataFrame:
    lines = spark.table("lineitem")
    late = lines.where("l_receiptdate > l_commitdate")
    others = lines.select(col("l_orderkey").alias("ok"), col("l_suppkey").alias("sk"))
    late_others = late.select(col("l_orderkey").alias("ok"), col("l_suppkey").alias("sk"))
    another = (col("ok") == col("l_orderkey")) & (col("sk") != col("l_suppkey"))
    return (
        spark.table("supplier")
        .join(
            spark.table("nation").where("n_name = 'SAUDI ARABIA'"), col("s_nationkey") == col("n_nationkey")
        )
        .join(late, col("s_suppkey") == col("l_suppkey"))
        .join(spark.table("orders").where("o_orderstatus = 'F'"), col("o_orderkey") == col("l_orderkey"))
        .join(others, another, "left_semi")
        .join(late_others, another, "left_anti")
        .groupBy("s_name")
        .agg(F.count("*").alias("numwait"))
        .orderBy(F.desc("numwait"), "s_name")
        .limit(100)
    )


def q22(spark: SparkSession) -> DataFrame:
    code = F.substring("c_phone", 1, 2)
    customers = spark.table("customer").where(code.isin("13", "31", "23", "29", "30", "18", "17"))
    usual = customers.where("c_acctbal > 0.00").agg(F.avg("c_acctbal").alias("usual"))
    return (
        customers.crossJoin(usual)
        .where("c_acctbal > usual")
        .join(spark.table("orders"), col("o_custkey") == col("c_custkey"), "left_anti")
        .groupBy(code.alias("cntrycode"))
        .agg(F.count("*").alias("numcust"), F.sum("c_acctbal").alias("totacctbal"))
        .orderBy("cntrycode")
    )


QUERIES: tuple[Query, ...] = (
    q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22,
)  # fmt: skip

"""CSV, JSON, ORC, text and binary files: read as Spark reads them, or left to it, never a wrong row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engine.outcome import outcome

from wallaby.engine import Engine

SCHEMA = "s string, i int, l bigint, d double, b boolean, t date, p decimal(10,2)"
PLAIN = (
    "a b,1,10,0.1,true,2020-02-29,1.5\r\n"
    '"q,uoted",-2,-9223372036854775,1e10,false,1999-12-31,-12345678.99\r\n'
    ",,,,,,\n\n"
    "é 😀,0,0,-0.0,,9999-12-31,0"
)
#: What each file has, how it is read, and whether it is read natively.
CSV = {
    "plain": (PLAIN, {}, True),
    "header": ("S,x,y,z,b,t,p\n" + PLAIN, {"header": "true"}, True),
    "tabs": ("a\t1\t2\t0.5\ttrue\t2020-01-01\t1\n", {"sep": "\\t"}, True),
    "null value": ("a,NA,2,NA,true,NA,1\nNA,1,2,0.5,true,2020-01-01,1\n", {"nullValue": "NA"}, True),
    "failing": (PLAIN, {"mode": "FAILFAST"}, True),
    "dropping": (PLAIN, {"mode": "DROPMALFORMED"}, True),
    "few fields": ("a,1\nb\n", {}, False),
    "many fields": (PLAIN + ",1,2,3\n", {}, False),
    "empty quotes": ('"",1,2,0.5,true,2020-01-01,1\n', {}, False),
    "escapes": ('"a\\"b",1,2,0.5,true,2020-01-01,1\n', {}, False),
    "doubled quotes": ('"a""b",1,2,0.5,true,2020-01-01,1\n', {}, False),
    "stray quotes": ('a"b"c,1,2,0.5,true,2020-01-01,1\n', {}, False),
    "spaces": ("a, 1,2, 0.5 ,true, 2020-01-01,1\n", {}, False),
    "trimmed": ("a, 1,2, 0.5 ,true, 2020-01-01,1\n", {"ignoreLeadingWhiteSpace": "true"}, False),
    "odd numbers": ("a,+1,1.0,1f,TRUE,2020-1-1,1e1\n", {}, False),
    "not numbers": ("a,x,y,NaN,z,2020-02-30,w\n", {}, False),
    "too large": ("a,3000000000,1,1e400,true,2020-01-01,123456789\n", {}, False),
    "old": ("a,1,2,0.5,true,1500-02-29,1\n", {}, False),
    "date format": ("a,1,2,0.5,true,01/02/2020,1\n", {"dateFormat": "dd/MM/yyyy"}, False),
    "blank": ("a,1,2,0.5,true,2020-01-01,1\n  \t \n", {}, False),
    "comments": ("#a,1,2,0.5,true,2020-01-01,1\n", {"comment": "#"}, False),
    "a byte order mark": ("\ufeffa,1,2,0.5,true,2020-01-01,1\n", {}, False),
    "several lines": ('"a\nb",1,2,0.5,true,2020-01-01,1\n', {"multiLine": "true"}, False),
    "nothing": ("", {}, True),
}
OBJECTS = (
    '{"s": "a", "i": 1, "d": 0.5, "b": true, "t": "2020-02-29", "a": [1, null], "r": {"x": 1, "y": "é"}}\n'
    '{"i": -1, "d": 3, "other": [{}]}\n\n{"s": null, "r": {}, "a": []}'
)
JSON_SCHEMA = "s string, i int, d double, b boolean, t date, a array<bigint>, r struct<x: int, y: string>"
JSON = {
    "plain": (OBJECTS, True),
    "a number for a text": ('{"s": 1}\n', False),
    "a text for a number": ('{"i": "1"}\n', False),
    "other letters": ('{"S": "a", "i": 1}\n', True),
    "malformed": ('{"s": "a"}\n{"s": \n', False),
    "twice": ('{"i": 1, "i": 2}\n', False),
    "NaN": ('{"d": NaN}\n', False),
    "a list": ('[{"i": 1}, {"i": 2}]\n', False),
    "too large": ('{"i": 3000000000}\n', False),
}


def write(path: Path, text: str) -> str:
    path.mkdir(parents=True)
    (path / "part-0.txt").write_bytes(text.encode())
    return str(path)


def agree(engine: Engine, query: DataFrame, *, native: bool) -> None:
    result = engine.run(query)
    assert result.is_wholly_native == native, engine.fallback_reasons(query)
    assert outcome(result.rows) == outcome(query.collect)


@pytest.mark.parametrize("name", CSV)
def test_csv(name: str, spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    text, options, native = CSV[name]
    rows = spark.read.schema(SCHEMA).options(**options).csv(write(tmp_path / "t", text))
    agree(engine, rows, native=native)
    if native:
        agree(
            engine,
            rows.groupBy("b").agg({"i": "sum", "s": "count"}).where("b is not null or true"),
            native=True,
        )
        agree(engine, rows.where("i >= 0").selectExpr("count(*)"), native=True)


@pytest.mark.parametrize("name", JSON)
def test_json(name: str, spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    text, native = JSON[name]
    rows = spark.read.schema(JSON_SCHEMA).json(write(tmp_path / "t", text))
    agree(engine, rows, native=native)
    if native:
        agree(engine, rows.groupBy().agg({"i": "sum", "*": "count"}), native=True)


def test_schemas_that_spark_finds_itself(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "csv" / "day=2020-01-01", "n,v\n1,a\n2,b\n")
    write(tmp_path / "csv" / "day=2020-01-02", "n,v\n3,a\n")
    table = spark.read.csv(str(tmp_path / "csv"), header=True, inferSchema=True)
    agree(engine, table, native=True)
    agree(engine, table.where("day > '2020-01-01' and n > 0").groupBy("v").sum("n"), native=True)
    agree(engine, spark.read.json(write(tmp_path / "json", '{"b": 1, "a": "x"}\n{"a": "y"}\n')), native=True)


def test_text(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    lines = spark.read.text(write(tmp_path / "t", "to be\r\nor not\n\nto be é"))
    agree(engine, lines, native=True)
    words = lines.selectExpr("explode(split(value, ' ')) as word").groupBy("word").count()
    agree(engine, words, native=True)
    whole = spark.read.text(str(tmp_path / "t"), wholetext=True)
    agree(engine, whole, native=False)


def test_binary_files(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    for number, data in enumerate((b"\x00\xff", b"one", "é 😀".encode("utf-16"), bytes(3000))):
        folder = tmp_path / "t" / f"kind={number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"odd name %20 {number}.bin").write_bytes(data)
    files = spark.read.format("binaryFile").load(str(tmp_path / "t"))
    agree(engine, files, native=True)
    agree(engine, files.groupBy("kind").agg({"length": "sum", "path": "max", "*": "count"}), native=True)
    agree(engine, files.where("length > 2").selectExpr("modificationTime", "hex(content)"), native=True)
    agree(engine, files.selectExpr("count(*)"), native=True)
    with_short_limit = spark.read.format("binaryFile").load(str(tmp_path / "t" / "kind=1"))
    spark.conf.set("spark.sql.sources.binaryFile.maxLength", "100")
    try:
        agree(engine, with_short_limit, native=False)
        agree(engine, with_short_limit.select("length"), native=True)
    finally:
        spark.conf.unset("spark.sql.sources.binaryFile.maxLength")
    (tmp_path / "t" / "empty").write_bytes(b"")  # Spark passes over it
    agree(engine, spark.read.format("binaryFile").load(str(tmp_path / "t" / "empty")), native=True)


def test_orc(spark: SparkSession, engine: Engine, tmp_path: Path) -> None:
    rows = spark.sql(
        "select cast(id % 100 as tinyint) y, cast(id as int) i, id l, cast(id as float) f, id / 7 d, id % 2 = 0 b,"
        " concat('é', id) s, cast(cast(id as string) as binary) n, cast(id as decimal(20,3)) p,"
        " date_add(date'1583-01-01', cast(id as int) * 1000) t, id % 3 part from range(1000)"
    )
    rows = rows.selectExpr(*(f"if(l % 7 = 0, null, {name}) {name}" for name in "yilfdbsnpt"), "part")
    rows.write.partitionBy("part").orc(str(tmp_path / "t"))
    table = spark.read.orc(str(tmp_path / "t"))
    agree(engine, table, native=True)
    agree(
        engine, table.where("part = 1 and i > 500").groupBy("b").agg({"p": "sum", "*": "count"}), native=True
    )
    agree(engine, table.selectExpr("count(*)"), native=True)
    spark.sql("select 1 I, 'x' more").write.orc(str(tmp_path / "u"))
    narrow = spark.read.schema("i int, l bigint, more string").orc(str(tmp_path / "u"))
    agree(engine, narrow, native=True)
    agree(engine, spark.read.schema("i bigint").orc(str(tmp_path / "u")), native=False)
    spark.sql("select date'1500-03-01' t union all select date'2020-01-01'").write.orc(str(tmp_path / "old"))
    old = spark.read.orc(str(tmp_path / "old"))
    agree(engine, old, native=True)  # as far as can be known before it is read
    result = engine.run(old)
    assert result.rows()
    assert not result.native
    spark.sql("select timestamp'2020-01-01 12:00:00' z").write.orc(str(tmp_path / "z"))
    agree(engine, spark.read.orc(str(tmp_path / "z")), native=False)

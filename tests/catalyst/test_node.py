"""Plans are decoded as `PlanWriter.java` writes them: what it wrote before it names only."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from wallaby.catalyst.node import Node, PlanText, UnreadablePlanError, decode

ATTRIBUTE = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
ALIAS = "org.apache.spark.sql.catalyst.expressions.Alias"
PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"


def column(number: int, *, nullable: bool = False) -> dict[str, Any]:
    return {"c": ATTRIBUTE, "k": [], "t": "int", "n": nullable, "x": [number, "a"]}


def again(number: int) -> dict[str, Any]:
    return {"@": number}


def decoded(*columns: dict[str, Any], **fields: Any) -> PlanText:
    root = {"c": PROJECT, "k": [], "o": [], "f": {"projectList": list(columns), **fields}}
    written = json.dumps({"plan": root, "settings": {}, "streaming": False}).encode()
    return decode(base64.b64encode(zlib.compress(written)).decode())


def listed(*columns: dict[str, Any]) -> tuple[Node, ...]:
    return decoded(*columns).root.nodes("projectList")


def test_a_column_is_written_once() -> None:
    text = decoded(column(7), again(7), column(9), again(7), again(9))
    seven, once_more, nine, third, last = text.root.nodes("projectList")
    assert (seven.id, nine.id, text.largest_id) == (7, 9, 9)
    assert seven is once_more is third
    assert nine is last


def test_a_column_that_has_changed_is_written_again() -> None:
    first, same, changed, last = listed(column(7), again(7), column(7, nullable=True), again(7))
    assert not first.nullable
    assert not same.nullable
    assert changed.nullable
    assert last.nullable


def test_what_computes_a_column_does_not_stand_for_it() -> None:
    computed = {"c": ALIAS, "k": [column(3)], "t": "int", "n": False, "x": [7, "a"]}
    _, there, _, found = listed(column(7), again(7), computed, again(7))
    assert found is there
    assert found.class_name == ATTRIBUTE


def test_options_may_have_any_names() -> None:
    options = {"@": "1", "c": "csv"}
    found = decoded(relation={"c": FILES, "options": options}).root.field("relation")
    assert isinstance(found, dict)
    assert found["options"] == options


def test_a_schema_is_text_in_the_text() -> None:
    schema = {"type": "struct", "fields": [{"name": "k", "type": "int", "nullable": True, "metadata": {}}]}
    found = decoded(relation={"c": FILES, "schema": json.dumps(schema)}).root.field("relation")
    assert isinstance(found, dict)
    assert found["schema"] == schema


def test_a_column_that_was_never_written_makes_the_plan_unreadable() -> None:
    with pytest.raises(UnreadablePlanError, match="damaged"):
        decoded(again(7))

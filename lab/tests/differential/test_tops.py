"""Tops are reproducible by their seeds, blocks hold every case once, and figures add up to the page."""

from __future__ import annotations

from collections import Counter

from wallaby_lab import tpch
from wallaby_lab.differential import report
from wallaby_lab.differential.generated.schemas import Field, RandomTable
from wallaby_lab.differential.page import page
from wallaby_lab.differential.tops.arena import TopCase, TopComparison, kinds
from wallaby_lab.differential.tops.blocks import TpchBlock, tpch_blocks
from wallaby_lab.differential.tops.campaign import TopTally
from wallaby_lab.differential.tops.catalogue import Top, every_top, top_of
from wallaby_lab.differential.tops.script import random_script, tpch_script
from wallaby_lab.differential.tops.sinks import SINKS
from wallaby_lab.differential.tops.transforms import TRANSFORMS


def test_a_seed_has_its_top_and_many_seeds_have_all() -> None:
    drawn = [top_of(seed) for seed in range(2000)]
    assert drawn == [top_of(seed) for seed in range(2000)]
    assert {top.sink for top in drawn} == set(SINKS)
    assert {top.transform for top in drawn} == {"", *TRANSFORMS}
    assert {top.adaptive for top in drawn} == {True, False}
    assert Top("toArrow") not in drawn, "the other random queries have nothing but this"


def test_blocks_hold_every_query_with_every_top_once() -> None:
    cases = Counter((block.query, top.sink, top.transform) for block in tpch_blocks() for top in block.tops())
    assert set(cases.values()) == {1}
    assert len(cases) == len(tpch.QUERIES) * len(every_top())
    for wanted in every_top():
        adapted = [
            top.adaptive
            for block in tpch_blocks()
            for top in block.tops()
            if (top.sink, top.transform) == (wanted.sink, wanted.transform)
        ]
        assert True in adapted
        assert False in adapted


def tally(*verdicts: TopComparison) -> TopTally:
    found = TopTally(clean=1)
    for verdict in verdicts:
        found.count(["rdd"], verdict)
    return found


def test_figures_say_what_ran_and_why_nothing_did() -> None:
    found = tally(
        TopComparison("part", parts=("scan t0, inner join with s0; aggregate",)),
        TopComparison("whole"),
        TopComparison("none", reasons=("Sample: it is random",)),
        TopComparison("part", raised="DIVIDE_BY_ZERO", parts=("scan t1, sort",)),
        TopComparison("large"),
        TopComparison("invalid", reasons=("no such column",)),
    )
    assert (found.cases, found.how["part"], found.raised.total()) == (4, 2, 1)
    known = report.with_queries({}, report.TOPS, {"seeds": [0, 6], **report.top_figures(found, "abc")})
    text = page(known)
    assert "4 cases; in 2 a part ran below Spark, 1 ran as a whole" in text
    assert "In 1 both raised an error. 1 blocks left nothing behind. Different: none. 1 more" in text
    assert "| rdd | 4 | 2 | 1 | 0 | 1 | 0 |" in text
    assert "| 1 | join + aggregate + scan |" in text
    assert "| 1 | Sample: it is random |" in text
    assert report.next_seed(known, report.TOPS) == 6


def test_tallies_of_several_processes_add_up() -> None:
    total = tally(TopComparison("part", parts=("scan a",)))
    total.add(tally(TopComparison("none", reasons=("why",))))
    assert (total.cases, total.clean, total.tops["rdd"]) == (2, 2, Counter(part=1, none=1))
    assert kinds(["scan a; sort"]) == ["sort + scan"]


def test_blocks_are_run_until_they_have_figures_without_differences() -> None:
    first, second = TpchBlock(1, 0), TpchBlock(2, 0)
    good, bad = tally(TopComparison("whole")), tally(TopComparison("part"))
    bad.differences.append((2, "rdd: 1 rows instead of 2", "…"))
    known = report.with_tpch_tops({}, first, 0.01, good, "abc")
    known = report.with_tpch_tops(known, second, 0.01, bad, "abc")
    assert report.without_tops_yet(known, [first, second, TpchBlock(3, 0)]) == [second, TpchBlock(3, 0)]
    assert "2 queries at scale 0.01 with a part of the tops each (with abc)" in page(known)
    assert "Different: 2." in page(known)


def test_a_difference_is_a_script_that_can_be_compiled() -> None:
    case = TopCase('select "a\\n" from t0', Top("rdd", "Python UDF", adaptive=True), ("a",), frozenset({"b"}))
    tables = (RandomTable("t0", (Field("x", "int"),), ((1,), (None,))),)
    text = random_script(case, tables, {"spark.sql.ansi.enabled": "true"}, {"split": 1}, 'not "the" same')
    compile(text, "script", "exec")
    assert "Top(sink='rdd', transform='Python UDF', adaptive=True)" in text
    assert "split=1" in text
    compile(tpch_script(TopCase(tpch.query(1), Top("rdd")), "different"), "script", "exec")

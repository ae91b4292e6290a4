"""Generate the documentation pages that are made from code (`make pages`). A test checks that they are current."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tools.daily_functions import Daily, kept
from tools.rooms import ARCHITECTURE, architecture
from tools.write_reference import api, commands, error_page, events
from wallaby.catalyst.data_types import (
    ARRAYS,
    BOOLEANS,
    COMPARABLE,
    DATES,
    FLOATING,
    INTEGRAL,
    MAPS,
    NUMERIC,
    ORDERED,
    READABLE,
    SHORT_INTEGRAL,
    STRUCTS,
    TEXT,
)
from wallaby.config.registry import ANY_TIME, PREFIX, SETTINGS, Setting, shown_default, shown_value
from wallaby.functions.casts.casts import CASTS
from wallaby.functions.entry import Entry, Exactness
from wallaby.functions.registry import FAMILIES
from wallaby.reading.joins import KINDS
from wallaby.reading.leaves import NARROW
from wallaby.reading.operators import READERS, REFUSED
from wallaby.reading.windows import FUNCTIONS
from wallaby.relations.types import Kind

DOCS = Path(__file__).resolve().parent.parent / "docs"
_INTRODUCTION = """\
A setting is a key of Spark's configuration or a keyword of `wallaby.attach` and `wallaby.enable`:
`spark.wallaby.eventLog.dir` is the keyword `event_log_dir`. None of them has to be set.

- **When they are read.** `attach` reads and checks all settings, including those made with `spark.conf.set`. Keywords
  override keys.
- **Changes.** Settings marked * may be changed or unset at any time. The change applies from the next query on, and
  overrides keywords too. If another setting is changed later, the change has no effect, and a warning says so.
- **Mistakes.** Unknown keys and invalid values are errors, of `attach` or of the next query. A warning names settings
  that have no effect because of others."""


def configuration() -> str:
    """Every setting."""
    lines = [
        "# Configuration",
        "",
        "<!-- Generated from src/wallaby/config/registry.py by `make pages`. -->",
        "",
        _INTRODUCTION,
        "",
        "Sizes may have a unit (`k`, `m`, `g`, `t`), and so may times (`ms`, `s`, `m`, `h`; without one: seconds).",
        "",
        "| key | type | default | meaning |",
        "|---|---|---|---|",
    ]
    lines += [_row(setting) for setting in SETTINGS]
    return "\n".join(lines) + "\n"


def _row(setting: Setting) -> str:
    bounds = ""
    if setting.least or setting.most:
        low = f"from {_bound(setting, setting.least)}" if setting.least else ""
        high = f"to {_bound(setting, setting.most)}" if setting.most else ""
        bounds = f" ({' '.join(part for part in (low, high) if part)})"
    default = f"`{shown_default(setting)}`" if setting.default != "" else ""
    mark = " *" if setting.key in ANY_TIME else ""
    return f"| `{PREFIX}{setting.key}`{mark} | {setting.kind}{bounds} | {default} | {setting.doc} |"


def _bound(setting: Setting, value: float) -> str:
    """A bound in the unit in which users write it."""
    return shown_value(setting, value) if setting.kind == "bytes" else f"{value:g}"


_COMPATIBILITY = """# Which queries run natively

<!-- Generated from src/wallaby/functions and src/wallaby/reading by `make pages`. -->

Spark plans every query. Wallaby runs the plan if it supports each operator, expression and type in it and computes
them exactly as Spark does. Otherwise Spark runs the query, or the part of it that Wallaby cannot run; a reason names
what is not supported. `engine.explain(df)` shows what happens to a query; [using.md](using.md#what-stays-on-spark)
says more. Names on this page are those of Catalyst's classes, as reasons show them.

The one tolerance: sums and averages of floating-point numbers, and statistics computed from them, depend on the order
of rows, in Spark too. [using.md](using.md#what-is-the-same) says how closely they agree.

## Types

{types}

## Operators

Native: {operators}.

`DataSourceV2ScanRelation` is native for [tables of Iceberg](guides/tables.md#delta-lake-and-iceberg) alone.

Join types: {joins}.

Generators: `Explode`, `Inline` and `PosExplode`, also with OUTER; `Stack` of a constant number of rows; `JsonTuple` of
plain names, which leaves the query to Spark where `get_json_object` does.

Window functions: {windows}, and all native aggregates, over ROWS and RANGE frames. Not
native: RANGE frames with an offset of days over timestamps in a zone with daylight saving time.

Left to Spark, like every operator that is not listed here:

| operator | why | what helps |
|---|---|---|
{refused}

If only a source is not native, Spark runs just that and Wallaby runs the rest. The same holds for these operators, if
only sources and each other are below them: {narrow}. This is called a
[Spark leaf](using.md#what-stays-on-spark).

## Expressions

Columns, constants, aliases and scalar subqueries are native, and so is every expression with a "yes" here. Expressions
that are not in these tables are left to Spark. Most EXISTS, IN (select …) and correlated subqueries are joins by the
time Wallaby sees them. "Any" stands for all native types except void and nested ones.
"""
_KIND_SETS = {
    ORDERED: "any",
    COMPARABLE: "any, also arrays and structs",
    ARRAYS: "arrays",
    STRUCTS: "structs",
    MAPS: "maps",
    NUMERIC: "numbers",
    INTEGRAL: "whole numbers",
    SHORT_INTEGRAL: "whole numbers up to int",
    FLOATING: "floating point",
    TEXT: "text",
    DATES: "dates",
    BOOLEANS: "booleans",
}


def compatibility() -> str:
    """Every type, operator and expression that is known, native or not."""
    refused = (f"| `{name}` | {why} | {remedy} |" for name, (why, remedy) in sorted(REFUSED.items()))
    outside = (
        "`CalendarIntervalType`, variants, strings with a collation, and nested types that contain these, any "
        "other interval, or void"
    )
    text = _COMPATIBILITY.format(
        types=f"Native: {_named(READABLE)}. Not: {outside}.",
        operators=_code(READERS),
        joins=_code(KINDS),
        windows=_code(FUNCTIONS),
        refused="\n".join(refused),
        narrow=_code(NARROW),
    )
    lines = [text]
    for title, entries in FAMILIES.items():
        lines += [
            f"### {title}",
            "",
            "| expression | native | arguments | notes, or why not |",
            "|---|---|---|---|",
        ]
        lines += [*map(_expression, entries), ""]
    lines += ["### Pairs of types for `Cast`", "", "| from | to | how |", "|---|---|---|", *_casts()]
    return "\n".join(lines) + "\n"


def _expression(entry: Entry) -> str:
    native = "no" if entry.exactness is Exactness.UNSUPPORTED else "yes"
    arguments = ", ".join(_KIND_SETS.get(kinds) or _named(kinds, " or ") for kinds in entry.takes)
    note = entry.note + (f" ({entry.remedy})" if entry.remedy else "")
    return f"| `{entry.catalyst}` | {native} | {arguments} | {note} |"


def _casts() -> list[str]:
    """A line for each source and each way to cast it."""
    ways: dict[tuple[Kind, str], list[Kind]] = {}
    for (source, target), (_, guard) in CASTS.items():
        ways.setdefault((source, guard), []).append(target)
    order = {kind: place for place, kind in enumerate(Kind)}
    found = sorted(
        ways.items(), key=lambda way: (order[way[0][0]], order[min(way[1], key=order.__getitem__)])
    )
    return [
        f"| {source.value} | {_named(targets)} | {guard or 'exactly'} |" for (source, guard), targets in found
    ]


def _named(kinds: Iterable[Kind], between: str = ", ") -> str:
    chosen = frozenset(kinds)
    return between.join(kind.value for kind in Kind if kind in chosen)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


_FUNCTIONS = """# Functions of everyday work

<!-- Generated from tools/daily_functions.csv and src/wallaby/functions by `make pages`. -->

{native} of {all} everyday functions and operators run natively. The list is in
[tools/daily_functions.csv](../tools/daily_functions.csv), with the Catalyst expression of an example of each;
[tools/daily_functions.py](../tools/daily_functions.py) says where it comes from.
[compatibility.md](compatibility.md) says which arguments and modes are covered.

| group | native | of |
|---|---|---|
{table}
"""


def functions() -> str:
    """The functions that people use daily, and which of them are native."""
    groups: dict[str, list[Daily]] = {}
    for daily in kept():
        groups.setdefault(daily.group, []).append(daily)
    table = [
        f"| {group} | {sum(daily.is_native for daily in found)} | {len(found)} |"
        for group, found in groups.items()
    ]
    every = [daily for found in groups.values() for daily in found]
    lines = [
        _FUNCTIONS.format(
            native=sum(daily.is_native for daily in every), all=len(every), table="\n".join(table)
        )
    ]
    for group, found in groups.items():
        native = ", ".join(_sign(daily.name) for daily in found if daily.is_native)
        others = ", ".join(_sign(daily.name) for daily in found if not daily.is_native)
        lines += [f"## {group.capitalize()}", "", f"Native: {native}.", ""]
        lines += [f"On Spark: {others}.", ""] if others else []
    return "\n".join(lines).rstrip() + "\n"


def _sign(name: str) -> str:
    return f"`{name}`"


PAGES: dict[str, Callable[[], str]] = {
    "compatibility.md": compatibility,
    "configuration.md": configuration,
    "functions.md": functions,
    "reference/api.md": api,
    "reference/commands.md": commands,
    "reference/errors.md": error_page,
    "reference/events.md": events,
}


def main() -> None:
    """Write every generated page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")


if __name__ == "__main__":
    main()

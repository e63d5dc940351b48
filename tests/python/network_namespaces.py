"""Two network namespaces joined by a pair of virtual devices: two hosts of their own, with a link that can be cut."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

HOSTS = ("host-a", "host-b")
ADDRESSES = ("10.213.0.1", "10.213.0.2")
DEVICE = "veth"  # the name in either namespace


def why_not() -> str:
    """Why this machine makes none, "" where it does."""
    try:
        with two_hosts():
            return ""
    except FileNotFoundError as error:  # no lack of rights, for which alone conftest.py lets CI skip a test
        return f"{error.filename} is not installed (iproute2, util-linux)"
    except (OSError, subprocess.CalledProcessError) as error:
        cause = getattr(error, "stderr", "") or str(error)
        return f"network namespaces are not permitted here: {cause.strip()}"


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


class TwoHosts:
    """The namespaces, each kept by a process."""

    def __init__(self, keepers: list[subprocess.Popen[bytes]]) -> None:
        self._keepers = keepers

    def inside(self, host: int, command: list[str]) -> list[str]:
        """The command line that runs `command` on a host."""
        return ["nsenter", "--target", str(self._keepers[host].pid), "--net", "--uts", "--", *command]

    def cut(self, host: int) -> None:
        """Takes the host's end of the link down: nothing that is sent arrives, and no connection is closed."""
        _run(*self.inside(host, ["ip", "link", "set", DEVICE, "down"]))


@contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    """Gone at the end, with whatever still runs in them."""
    keepers: list[subprocess.Popen[bytes]] = []
    try:
        for name in HOSTS:
            keeper = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", f"hostname {name} && echo ready && exec sleep 900"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            keepers.append(keeper)
            if keeper.stdout.readline() != b"ready\n":
                raise OSError(keeper.stderr.read().decode())
        hosts = TwoHosts(keepers)
        _run("ip", "link", "add", "name", DEVICE, "netns", str(keepers[0].pid), "type", "veth", "peer", "name", DEVICE, "netns",
             str(keepers[1].pid))
        for host, address in enumerate(ADDRESSES):
            _run(*hosts.inside(host, ["ip", "address", "add", f"{address}/24", "dev", DEVICE]))
            for device in ("lo", DEVICE):
                _run(*hosts.inside(host, ["ip", "link", "set", device, "up"]))
        yield hosts
    finally:
        for keeper in keepers:
            keeper.kill()
            keeper.wait()
            keeper.stdout.close()
            keeper.stderr.close()

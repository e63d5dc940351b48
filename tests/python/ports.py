"""Ports of this machine for the servers that tests start."""

from __future__ import annotations

import os
import socket

# Below 32768, where the system takes ports for connections: none of these becomes one between the choice and the server's start.
FIRST, PORTS_OF_A_WORKER, WORKERS = 12000, 1000, 20

_chosen = os.getpid()  # two runs of pytest seldom begin at the same port


def free_port() -> int:
    """A port without a listener. No other worker of pytest-xdist gets it, and this one again only after 1000 others."""
    global _chosen
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    for _ in range(PORTS_OF_A_WORKER):
        _chosen += 1
        port = FIRST + worker * PORTS_OF_A_WORKER + _chosen % PORTS_OF_A_WORKER
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a port in TIME_WAIT is free
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port from {FIRST + worker * PORTS_OF_A_WORKER} on")

"""Two hosts on one machine: network namespaces joined by a cable, each with a disk of its own under the same path."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from ports import free_port
from program import SDTUNE
from test_ranks import (
    ROOT,
    WEIGHTS,
    base,  # noqa: F401 (a fixture)
    environment,
    layout,
    one_process,  # noqa: F401 (a fixture)
    photos,  # noqa: F401 (a fixture)
    relative,
    weights_of,
)

SECONDS = 240


class Host:
    """Network, mounts and host name of its own; `disk` is another folder on each, and the same path inside of them."""

    def __init__(self, index: int, disk: Path, own: Path) -> None:
        self.index, self.disk, self.own = index, disk, own
        self.process = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "--propagation", "private", "sleep", "infinity"])
        deadline = time.monotonic() + 10
        while os.readlink(f"/proc/{self.process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.01)

    @property
    def address(self) -> str:
        return f"10.77.0.{self.index + 1}"

    def inside(self, *words: str) -> list[str]:
        return ["nsenter", "--target", str(self.process.pid), "--net", "--mount", "--uts", *words]

    def do(self, *words: str) -> None:
        subprocess.run(self.inside(*words), check=True, capture_output=True)

    def set_up(self, cable: str) -> None:
        subprocess.run(["ip", "link", "set", cable, "netns", str(self.process.pid), "name", "eth0"], check=True)
        self.do("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.do("ip", "link", "set", "eth0", "up")
        self.do("ip", "link", "set", "lo", "up")
        self.do("hostname", f"host{self.index}")
        self.do("mount", "--bind", str(self.own), str(self.disk))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """In the folder of its disk. Its process is the program's own: nsenter becomes it."""
        return subprocess.Popen(self.inside("sh", "-c", 'cd "$0" && exec "$@"', str(self.disk), *words), text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(GLOO_SOCKET_IFNAME="eth0"))


def cabled(base: Path, photos: Path, folder: Path) -> list[Host]:  # noqa: F811
    """Both hosts. Each disk has base and photos."""
    disk = folder / "disk"
    disk.mkdir()
    hosts: list[Host] = []
    try:
        for index in range(2):
            own = folder / f"disk{index}"
            shutil.copytree(base, own / "base")
            shutil.copytree(photos, own / "photos")
            hosts.append(Host(index, disk, own))
        names = [f"sd{os.getpid() % 100000}{end}" for end in "ab"]
        subprocess.run(["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]], check=True, capture_output=True)
        for host, name in zip(hosts, names, strict=True):
            host.set_up(name)
    except (OSError, subprocess.CalledProcessError, AssertionError):
        end(hosts)
        raise
    return hosts


def end(hosts: list[Host]) -> None:
    for host in hosts:
        host.process.kill()
        host.process.wait()


@pytest.fixture
def hosts(base: Path, photos: Path, tmp_path: Path) -> Iterator[list[Host]]:  # noqa: F811
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        pytest.skip("ip and nsenter are not installed (iproute2, util-linux)")
    try:
        found = cabled(base, photos, tmp_path)
    except (OSError, subprocess.CalledProcessError, AssertionError) as error:
        pytest.skip(f"network and mount namespaces are not permitted here: {error}")
    yield found
    end(found)


def training(*options: str) -> list[str]:
    """As test_ranks.train_command, by paths that each host has its own files under."""
    return ["train", "--images", "photos", "--base", "./base", "--output", "run", "--device", "cpu", "--with-prior-preservation=false",
            "--train-text-encoder=false", "--learning-rate", "1e-4", "--peer-timeout", "8", "--start-timeout", "60",
            *layout(batch=1, micro_batch=1, accumulation=1), *options]


def launch(host: Host, first: Host, words: list[str], port: int) -> subprocess.Popen[str]:
    return host.start(str(SDTUNE), "launch", "--nproc", "2", "--nnodes", "2", "--node-rank", str(host.index), "--rendezvous",
                      f"{first.address}:{port}", "--", *words)


def torchrun(host: Host, first: Host, words: list[str], port: int) -> subprocess.Popen[str]:
    return host.start(str(ROOT / ".venv/bin/torchrun"), "--nproc-per-node", "2", "--nnodes", "2", "--node-rank", str(host.index),
                      "--master-addr", first.address, "--master-port", str(port), "--no-python", str(SDTUNE), *words)


def ends_of(ranks: list[subprocess.Popen[str]]) -> list[str]:
    """What each printed to stderr; all must end well."""
    try:
        errors = [rank.communicate(timeout=SECONDS)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), errors
    return errors


@pytest.mark.parametrize("starts", [launch, pytest.param(torchrun, marks=pytest.mark.long)])
def test_two_ranks_on_each_of_two_hosts_equal_one_process(starts, hosts: list[Host], one_process: np.ndarray) -> None:  # type: ignore[no-untyped-def] # noqa: F811
    """Four ranks over a cable; those with another seed are the mutant. The second host's disk gets nothing of the run."""
    port = free_port()
    ends_of([starts(host, hosts[0], training(), port) for host in hosts])
    assert relative(weights_of(hosts[0].own / "run"), one_process) <= 1e-5
    assert not (hosts[1].own / "run/model").exists()
    ends_of([starts(host, hosts[0], training("--overwrite", "--seed", "4"), port) for host in hosts])
    assert relative(weights_of(hosts[0].own / "run"), one_process) > 1e-5


def test_a_host_that_is_lost_is_replaced_by_an_empty_one(hosts: list[Host], base: Path, photos: Path) -> None:  # noqa: F811
    """Its cable is pulled and its processes end; then it comes again with nothing but base and photos. No bit changes."""
    words = training("--max-train-steps", "40", "--checkpointing-steps", "5")
    port = free_port()
    ends_of([launch(host, hosts[0], words, port) for host in hosts])
    undisturbed = (hosts[0].own / "run" / WEIGHTS).read_bytes()
    shutil.rmtree(hosts[0].own / "run")
    ranks = [launch(host, hosts[0], words, port) for host in hosts]
    metrics = hosts[0].own / "run/metrics.jsonl"
    deadline = time.monotonic() + 90
    try:
        while not metrics.exists() or len(metrics.read_text().splitlines()) < 12:
            assert time.monotonic() < deadline and ranks[0].poll() is None, "the run does not get to step 12"
            time.sleep(0.02)
    finally:
        hosts[1].do("ip", "link", "set", "eth0", "down")
        ranks[1].kill()
        ranks[1].communicate()
    for path in hosts[1].own.iterdir():
        shutil.rmtree(path)
    shutil.copytree(base, hosts[1].own / "base")
    shutil.copytree(photos, hosts[1].own / "photos")
    hosts[1].do("ip", "link", "set", "eth0", "up")
    ranks[1] = launch(hosts[1], hosts[0], [*words, "--resume-from-checkpoint", "auto"], port)
    errors = ends_of(ranks)
    assert re.search(r"rank [01] ended with exit code 138; restart 1 of 3", errors[0]), errors
    attempts = json.loads((hosts[0].own / "run/run.json").read_text())["attempts"]
    assert attempts[-1]["first_step"] >= 10, attempts
    assert (hosts[0].own / "run" / WEIGHTS).read_bytes() == undisturbed
    assert [path.name for path in (hosts[1].own / "run").rglob("*.safetensors")] == []

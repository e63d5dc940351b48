"""scripts/launch/slurm.sbatch on a real SLURM: two nodes with two ranks each, and a job that is preempted and requeued."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from program import SDTUNE
from slurm_cluster import Cluster
from test_ranks import (
    ROOT,
    WEIGHTS,
    base,  # noqa: F401 (a fixture)
    one_process,  # noqa: F401 (a fixture)
    photos,  # noqa: F401 (a fixture)
    relative,
    weights_of,
)
from test_two_hosts import Host, hosts, training  # noqa: F401 (hosts is a fixture)

BATCH = ["--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1", "--time=10"]


@pytest.fixture
def cluster(hosts: list[Host]) -> Iterator[Cluster]:  # noqa: F811
    if any(shutil.which(program) is None for program in ("slurmctld", "slurmd", "munged")):
        pytest.skip("SLURM is not installed (slurm-wlm, munge)")
    folder = Path(tempfile.mkdtemp(prefix="slurm"))  # slurmstepd's sockets lie in it, and their paths end at 108 bytes
    found = Cluster(hosts, folder)
    try:
        found.start()
        yield found
    finally:
        found.end()
        shutil.rmtree(folder, ignore_errors=True)


def submit(cluster: Cluster, name: str, *options: str) -> str:
    """The template, from the nodes' disk."""
    words = [word if word != "run" else name for word in training(*options)]
    assert words[0] == "train"
    return cluster.submit(*BATCH, f"--chdir={cluster.hosts[0].disk}", f"--output={cluster.folder}/{name}.out", f"--job-name={name}",
                          str(ROOT / "scripts/launch/slurm.sbatch"), *words[1:], SDTUNE=str(SDTUNE), OMP_NUM_THREADS="1", HOME="/root")


def succeed(cluster: Cluster, job: str, name: str) -> Path:
    """Waits for its end; the run folder, on the disk of rank 0's node."""
    cluster.wait(f"the end of {name}", lambda: cluster.state(job) in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"), 240)
    assert cluster.state(job) == "COMPLETED", (cluster.folder / f"{name}.out").read_text()
    return cluster.hosts[0].own / name


def test_four_ranks_of_two_nodes_equal_one_process(cluster: Cluster, one_process: np.ndarray) -> None:  # noqa: F811
    """By srun's own variables; another seed is the mutant. Preempted by a job of a higher partition: requeued, and byte-equal in the end."""
    plain = succeed(cluster, submit(cluster, "plain"), "plain")
    assert relative(weights_of(plain), one_process) <= 1e-5
    other = succeed(cluster, submit(cluster, "other", "--seed", "4"), "other")
    assert relative(weights_of(other), one_process) > 1e-5

    long = ("--max-train-steps", "240", "--checkpointing-steps", "200")
    undisturbed = succeed(cluster, submit(cluster, "long", *long), "long")
    job = submit(cluster, "preempted", *long)
    metrics = cluster.hosts[0].own / "preempted/metrics.jsonl"
    cluster.wait("step 12", lambda: metrics.exists() and len(metrics.read_text().splitlines()) >= 12)
    winner = cluster.submit("--partition=high", "--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1", f"--chdir={cluster.hosts[0].disk}",
                            f"--output={cluster.folder}/winner.out", "--wrap=srun hostname")
    cluster.wait("the winner's end", lambda: cluster.state(winner) == "COMPLETED")
    again = succeed(cluster, job, "preempted")
    assert cluster.facts(job)["Restarts"] == "1"
    attempts = json.loads((again / "run.json").read_text())["attempts"]
    # It saved where it was, which is no multiple of checkpointing_steps.
    assert len(attempts) == 2 and 12 <= attempts[1]["first_step"] < 200, attempts
    assert (again / WEIGHTS).read_bytes() == (undisturbed / WEIGHTS).read_bytes()

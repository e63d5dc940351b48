"""The model of scale (scripts/scale_model.py): its arithmetic, its page, and how near it comes to the recorded steps of real ranks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from program import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from scale.gloo_check import predict  # noqa: E402
from scale.step_model import Bucket, Network, Step, all_reduce, alone_seconds, efficiency, step_seconds  # noqa: E402

FREE = Network("free", 1e30, 1e30, 0, 0)
SLOW = Network("slow", 1e9, 1e8, 0, 0)


def step(owner: int) -> Step:
    return Step(forward=1, backward=2, update=0.5, weight_bytes=10**9, buckets=[Bucket(10**9, owner, 0.5), Bucket(10**9, owner, 1.0)])


def test_a_network_without_cost_loses_nothing() -> None:
    """ZeRO then gains what it spares of the update."""
    assert efficiency(step(-1), alone_seconds(step(-1)), 64, FREE) == pytest.approx(1)
    assert step_seconds(step(0), 64, FREE) == pytest.approx(3 + 0.5 / 64)


def test_what_an_all_reduce_moves() -> None:
    """2 (N - 1) / N of its bytes over the slowest link of the ring: within a machine its own, beyond it the network."""
    assert all_reduce(1e9, 2, SLOW) == pytest.approx(1) and all_reduce(1e9, 8, SLOW) == pytest.approx(1.75)
    assert all_reduce(1e9, 16, SLOW) == pytest.approx(2 * 15 / 16 * 10)


def test_what_hides_behind_backward() -> None:
    """On two ranks the first sum takes the second half of backward, a second; the last one comes after it."""
    assert step_seconds(step(-1), 2, SLOW) == pytest.approx(1 + 2 + 1 + 0.5)


def test_the_page_is_of_the_recorded_figures() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts/scale_model.py"), "page", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_real_ranks_over_a_bounded_cable_are_predicted() -> None:
    """Recorded: 2 and 4 Gloo ranks, with and without ZeRO, within 15 % by the model as it is; a cable half as fast again is the mutant."""
    rows = json.loads((ROOT / "docs/measurements/scale.json").read_text())["gloo"]["rows"]
    assert {(row["ranks"], row["shard"]) for row in rows} == {(2, "none"), (2, "optimizer"), (4, "none"), (4, "optimizer")}
    for row in rows:
        facts = (row["unbound_s"], row["phases_s"], row["recorded"], row["ranks"])
        assert predict(*facts, row["mbit"]) == pytest.approx(row["predicted_s"]) == pytest.approx(row["measured_s"], rel=0.15)
        assert predict(*facts, row["mbit"] * 3 // 2) != pytest.approx(row["measured_s"], rel=0.15)

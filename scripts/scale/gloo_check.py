"""Steps of real Gloo ranks on two hosts (network namespaces) over a cable of a set rate, beside what gloo_model.py says of them."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from scale import gloo_model
from scale.step_model import Bucket, Step

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
BASE = ROOT / "models" / "portrait-64"
CASES = [(2, "none", 200), (2, "optimizer", 200), (4, "none", 400), (4, "optimizer", 400)]
STEPS, FIRST = 14, 5  # of a run; the first that counts
# Of a frame of 1514 bytes on the cable, what Gloo's data is: 1448 (Ethernet, IP and TCP with time stamps are the rest).
SHARE_OF_DATA = 1448 / 1514


def record(recorder: Path, ranks: int, shard: str) -> dict[str, Any]:
    words = [str(BASE), "full", "no", "16", "false", str(ranks), shard]
    done = subprocess.run([str(recorder), *words], check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return json.loads(done.stdout)


def run(hosts: list[Any], program: Path, ranks: int, shard: str, port: int, *more: str) -> Path:
    """A training on both; its folder."""
    shutil.rmtree(hosts[0].own / "run", ignore_errors=True)
    words = ["train", "--images", "photos", "--base", "./base", "--output", "run", "--device", "cpu", "--with-prior-preservation=false",
             "--train-text-encoder=false", "--train-batch-size", "1", "--micro-batch", "1", "--max-train-steps", str(STEPS), "--shard", shard,
             "--report-to", "none", "--report-images", "0", "--checkpointing-steps", "1000", *more]
    started = [host.start(str(program), "launch", "--nproc", str(ranks // 2), "--nnodes", "2", "--node-rank", str(host.index), "--rendezvous",
                          f"{hosts[0].address}:{port}", "--", *words) for host in hosts]
    errors = [one.communicate(timeout=600)[1] for one in started]
    if any(one.returncode for one in started):
        raise RuntimeError("\n".join(errors))
    return hosts[0].own / "run"


def median_step(folder: Path) -> float:
    ends = [json.loads(line)["elapsed"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(after - before for before, after in zip(ends[FIRST - 2:], ends[FIRST - 1:]))


def phases(folder: Path) -> dict[str, float]:
    """Seconds of each phase in the median profiled step, and of the step."""
    events = [one for one in json.loads((folder / "profile/trace.json").read_text())["traceEvents"] if one.get("ph") == "X"]
    found: dict[str, list[float]] = {}
    for one in events:
        name = "step" if str(one["name"]).startswith("ProfilerStep#") else one["name"]
        if name in ("step", "forward", "backward", "sum over ranks", "update", "load batch"):
            found.setdefault(name, []).append(one["dur"] / 1e6)
    return {name: statistics.median(values) for name, values in found.items()}


def step_of(unbound: float, parts: dict[str, float], recorded: dict[str, Any]) -> Step:
    """Without its waits for the cable, which hardly costs time while it has no bound; phases as shares of the step, which the profiler slows."""
    scale = unbound / parts["step"]
    backward, update = scale * parts["backward"], scale * parts["update"]
    forward = unbound - backward - update - scale * parts["sum over ranks"]
    buckets = [Bucket(*one) for one in recorded["buckets"]]
    return Step(forward=forward, backward=backward, update=update, weight_bytes=recorded["weight_bytes"], buckets=buckets)


def predict(unbound: float, parts: dict[str, float], recorded: dict[str, Any], ranks: int, mbit: int) -> float:
    """Seconds of a step over the bounded cable."""
    step = step_of(unbound, parts, recorded)
    by_owner: dict[int, int] = {}
    for bucket in step.buckets:
        by_owner[bucket.owner] = by_owner.get(bucket.owner, 0) + bucket.bytes
    return gloo_model.step_seconds(step, ranks, mbit * 1e6 / 8 * SHARE_OF_DATA, [(size, owner) for owner, size in by_owner.items()])


def measure(folder: Path, program: Path) -> list[dict[str, Any]]:
    from ports import free_port
    from test_two_hosts import cabled, end

    rows = []
    for number, (ranks, shard, mbit) in enumerate(CASES):
        own = folder / str(number)
        own.mkdir()
        recorded = record(program.parents[1] / "tests/scale/record_buckets", ranks, shard)
        hosts = cabled(BASE, ROOT / "examples/me", own)
        try:
            unbound = median_step(run(hosts, program, ranks, shard, free_port()))
            parts = phases(run(hosts, program, ranks, shard, free_port(), "--profile", "6"))
            for host in hosts:
                host.do("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit", "burst", "64kb", "latency", "100ms")
            measured = median_step(run(hosts, program, ranks, shard, free_port()))
        finally:
            end(hosts)
        predicted = predict(unbound, parts, recorded, ranks, mbit)
        rows.append({"ranks": ranks, "shard": shard, "mbit": mbit, "unbound_s": unbound, "predicted_s": predicted, "measured_s": measured,
                     "phases_s": parts, "recorded": recorded})
        print({key: value for key, value in rows[-1].items() if key != "recorded"}, flush=True)
    return rows

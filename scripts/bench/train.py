"""Whole training steps: `sdtune train` against a plain diffusers loop, each in a process of its own, taking turns."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .models import BenchModel, describe, write_photos, write_pipeline
from .peak import watch_peak
from .ratios import summarize

ROOT = Path(__file__).resolve().parents[2]
PRECISION = {"float32": "no", "bfloat16": "bf16"}
CANDIDATES = [(dtype, layout) for dtype in PRECISION for layout in ("contiguous", "channels_last")]


def run_child(command: list[str]) -> int:
    """Runs a process to its end and returns its peak resident memory in bytes."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said)
        peak = watch_peak(child)
        said.seek(0)
        error = said.read().decode()
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}:\n{error[-2000:]}")
    return peak


def run_ours(model: BenchModel, base: Path, photos: Path, output: Path, dtype: str) -> tuple[float, int]:
    """Median seconds a step after the warm-up, from the run's own metrics.jsonl, and peak memory."""
    steps = model.warm_up + model.steps
    peak = run_child([
        str(ROOT / ".venv/bin/sdtune"), "train", "--images", str(photos), "--base", str(base), "--output", str(output),
        "--overwrite", "--max-train-steps", str(steps), "--train-batch-size", str(model.batch),
        "--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate", "1e-5",
        "--checkpointing-steps", "100000", "--seed", "0", "--device", "cpu", "--mixed-precision", PRECISION[dtype]])
    times = [json.loads(line)["time"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    seconds = [after - before for before, after in zip(times, times[1:])]
    return statistics.median(seconds[model.warm_up - 1:]), peak


def run_theirs(model: BenchModel, base: Path, output: Path, dtype: str, layout: str) -> tuple[float, int]:
    """The same from the diffusers loop."""
    result = output.with_suffix(".json")
    peak = run_child([sys.executable, str(ROOT / "scripts/bench/diffusers_loop.py"), "--base", str(base), "--batch",
                      str(model.batch), "--steps", str(model.steps), "--warm-up", str(model.warm_up), "--latent-size",
                      str(model.latent_size), "--dtype", dtype, "--layout", layout, "--output", str(result)])
    return statistics.median(json.loads(result.read_text())["seconds"]), peak


def measure_training(model: BenchModel, folder: Path, rounds: int) -> dict[str, object]:
    """Same work on both sides: cached latents and prompt embeddings, AdamW, clipping at 1, float32 optimizer state."""
    base, photos = write_pipeline(model, folder), write_photos(model, folder)
    dtypes = [dtype for dtype in PRECISION if dtype == "float32" or model.name != "sd15" or has_bfloat16()]
    our_times = {dtype: run_ours(model, base, photos, folder / "ours", dtype)[0] for dtype in dtypes}
    their_times = {(dtype, layout): run_theirs(model, base, folder / "theirs", dtype, layout)[0]
                   for dtype, layout in CANDIDATES if dtype in dtypes}
    best = min(our_times, key=our_times.get), min(their_times, key=their_times.get)
    same = "float32", min((key for key in their_times if key[0] == "float32"), key=their_times.get)
    pairs = {"each_at_its_best": best, "both_float32": same}
    measured = {pair: alternate(model, base, photos, folder, *pair, rounds) for pair in dict.fromkeys(pairs.values())}
    return {"what": "training step", "model": describe(model),
            "candidates_s": {"ours": {key: round(value, 4) for key, value in our_times.items()},
                             "theirs": {", ".join(key): round(value, 4) for key, value in their_times.items()}},
            **{name: measured[pair] for name, pair in pairs.items()}}


def alternate(model: BenchModel, base: Path, photos: Path, folder: Path, our_dtype: str, theirs: tuple[str, str], rounds: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs."""
    ours, others = [], []
    for _ in range(rounds):
        ours.append(run_ours(model, base, photos, folder / "ours", our_dtype))
        others.append(run_theirs(model, base, folder / "theirs", *theirs))
    return {"ours": our_dtype, "theirs": ", ".join(theirs),
            **summarize([seconds for seconds, _ in ours], [seconds for seconds, _ in others]),
            "peak_memory_gib_ours": round(max(peak for _, peak in ours) / 2**30, 3),
            "peak_memory_gib_theirs": round(max(peak for _, peak in others) / 2**30, 3)}


def has_bfloat16() -> bool:
    """bfloat16 is tried at the full size only where the processor has instructions for it; elsewhere a step takes minutes."""
    flags = Path("/proc/cpuinfo").read_text()
    return "amx_bf16" in flags or "avx512_bf16" in flags

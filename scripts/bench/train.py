"""Whole training steps: `sdtune train` against a plain diffusers loop, each in a process of its own, taking turns."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .environment import ENVIRONMENTS, PLAIN, fastest_environment, variables_of
from .models import MODELS, describe, write_photos, write_pipeline
from .patience import time_each, time_limit
from .peak import watch_peak
from .ratios import summarize

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ("portrait-64", "portrait-128")  # latents of 16 x 16, batches of 4
PRECISION = {"float32": "no", "bfloat16": "bf16"}
CANDIDATES = [(dtype, layout) for dtype in PRECISION for layout in ("contiguous", "channels_last")]
LORA_RANK = 16
UNET_ALONE = ["--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate", "1e-5"]


@dataclass(frozen=True)
class Training:
    """What both sides train: the same base, layers, batch and optimizer; latents are cached on both, frozen prompt embeddings too."""

    base: Path
    photos: Path
    ours: list[str]  # options of sdtune
    theirs: list[str]  # options of diffusers_loop.py
    steps: int
    warm_up: int
    what: dict[str, object]  # for the JSON


def run_child(command: list[str], first_step: Path, environment: str = PLAIN) -> int:
    """Runs a process to its end and returns its peak resident memory in bytes from its first step on, behind which the file has content."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, cwd=ROOT, env=variables_of(environment), stdout=subprocess.DEVNULL, stderr=said)
        peak = watch_peak(child, time_limit(), first_step)
        said.seek(0)
        error = said.read().decode()
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}:\n{error[-2000:]}")
    return peak


def run_ours(training: Training, output: Path, dtype: str) -> tuple[float, int]:
    """Median seconds a step after the warm-up, from the run's own metrics.jsonl, and peak memory."""
    shutil.rmtree(output, ignore_errors=True)  # the lines of an earlier run are no first step of this one
    peak = run_child([
        str(ROOT / ".venv/bin/sdtune"), "train", "--images", str(training.photos), "--base", str(training.base), "--output", str(output),
        "--overwrite", "--max-train-steps", str(training.warm_up + training.steps), "--checkpointing-steps", "100000", "--seed", "0",
        "--device", "cpu", "--mixed-precision", PRECISION[dtype], *training.ours], output / "metrics.jsonl")
    times = [json.loads(line)["time"] for line in (output / "metrics.jsonl").read_text().splitlines()]
    seconds = [after - before for before, after in zip(times, times[1:])]
    return statistics.median(seconds[training.warm_up - 1:]), peak


def run_theirs(training: Training, output: Path, dtype: str, layout: str, compiled: str = "", environment: str = PLAIN) -> tuple[float, int]:
    """The same from the diffusers loop; its networks under torch.compile where `compiled` says "compiled"."""
    result, first_step = output.with_suffix(".json"), output.with_suffix(".first_step")
    first_step.unlink(missing_ok=True)
    peak = run_child([sys.executable, str(ROOT / "scripts/bench/diffusers_loop.py"), "--base", str(training.base), "--steps",
                      str(training.steps), "--warm-up", str(training.warm_up), "--dtype", dtype, "--layout", layout, "--output", str(result),
                      "--first-step", str(first_step), *(["--compile"] if compiled else []), *training.theirs], first_step, environment)
    return statistics.median(json.loads(result.read_text())["seconds"]), peak


def random_training(name: str, method: str, batch: int | None, steps: int | None, folder: Path) -> Training:
    """Of a UNet with random weights, alone."""
    model = MODELS[name].with_overrides(batch, steps)
    ours = [*UNET_ALONE, "--train-batch-size", str(model.batch), "--method", method]
    theirs = ["--batch", str(model.batch), "--latent-size", str(model.latent_size)]
    if method == "lora":
        ours += ["--lora-rank", str(LORA_RANK), "--lora-alpha", str(LORA_RANK)]
        theirs += ["--lora-rank", str(LORA_RANK)]
    return Training(write_pipeline(model, folder), write_photos(model, folder), ours, theirs, model.steps, model.warm_up,
                    {"model": describe(model), "method": method})


def bundled_training(name: str, steps: int | None, folder: Path) -> Training:
    """The defaults of a bundled base: UNet and text encoder, as many class images as photos in a step, an average of the weights. Its class
    images are generated once, before anything is timed."""
    base, photos, classes = ROOT / "models" / name, ROOT / "examples" / "me", folder / "class_images"
    ours = ["--class-data-dir", str(classes)]
    theirs = ["--batch", "4", "--latent-size", "16", "--train-text-encoder", "--prior", "--average"]
    training = Training(base, photos, ours, theirs, steps or 60, 10, {"model": name, "method": "full"})
    run_ours(Training(base, photos, ours, theirs, 1, 1, {}), folder / "first", "float32")
    return training


def measure_training(name: str, method: str, batch: int | None, steps: int | None, folder: Path, rounds: int,
                     compiled_too: bool) -> dict[str, object]:
    """AdamW with float32 states and clipping at 1 on both sides. `compiled_too`: rounds against diffusers under torch.compile as well, of
    each number format in the layout that is fastest without it."""
    training = bundled_training(name, steps, folder) if name in BUNDLED else random_training(name, method, batch, steps, folder)
    our_times, _ = time_each({dtype: lambda dtype=dtype: run_ours(training, folder / "ours", dtype)[0] for dtype in PRECISION})
    their_times, ended = time_each({key: lambda key=key: run_theirs(training, folder / "theirs", *key)[0] for key in CANDIDATES})
    best = min(our_times, key=our_times.get), min(their_times, key=their_times.get)
    environment, environments_s = fastest_environment(lambda name: run_theirs(training, folder / "theirs", *best[1], environment=name)[0])
    same = "float32", min((key for key in their_times if key[0] == "float32"), key=their_times.get)
    pairs = {"each_at_its_best": best, "both_float32": same}
    compiled_times = compiled(training, folder, their_times, environment) if compiled_too else {}
    if compiled_times:
        pairs["against_compiled"] = best[0], min(compiled_times, key=compiled_times.get)
    measured = {pair: alternate(training, folder, *pair, environment, rounds) for pair in dict.fromkeys(pairs.values())}
    return {"what": "training step", **training.what,
            "candidates_s": {"ours": {key: round(value, 4) for key, value in our_times.items()},
                             "theirs": {", ".join(key): round(value, 4) for key, value in their_times.items()}},
            **({"compiled_s": {", ".join(key): round(value, 4) for key, value in compiled_times.items()}} if compiled_times else {}),
            "ended_after_s": {f"theirs, {', '.join(key)}": value for key, value in ended.items()},
            "environments": ENVIRONMENTS, "environments_s": environments_s,
            **{name: measured[pair] for name, pair in pairs.items()}}


def compiled(training: Training, folder: Path, times: dict[tuple[str, str], float], environment: str) -> dict[tuple[str, ...], float]:
    """Seconds a step under torch.compile, of each number format in its fastest layout."""
    fastest: dict[str, tuple[str, str]] = {}
    for key in sorted(times, key=times.get):
        fastest.setdefault(key[0], key)
    return {(*key, "compiled"): run_theirs(training, folder / "theirs", *key, "compiled", environment)[0] for key in fastest.values()}


def alternate(training: Training, folder: Path, our_dtype: str, theirs: tuple[str, ...], environment: str, rounds: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs."""
    ours, others = [], []
    for _ in range(rounds):
        ours.append(run_ours(training, folder / "ours", our_dtype))
        others.append(run_theirs(training, folder / "theirs", *theirs, environment=environment))
    return {"ours": our_dtype, "theirs": ", ".join(theirs), "environment": environment,
            **summarize([seconds for seconds, _ in ours], [seconds for seconds, _ in others]),
            "peak_memory_gib_ours": round(max(peak for _, peak in ours) / 2**30, 3),
            "peak_memory_gib_theirs": round(max(peak for _, peak in others) / 2**30, 3), "peak_memory_since": "first step"}

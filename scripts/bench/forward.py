"""The UNet's forward pass, ours and diffusers', in one process on the same LibTorch."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from diffusers import UNet2DConditionModel

import sdtune

from .models import BenchModel, describe, write_unet
from .ratios import summarize

SCRIPTS = Path(__file__).resolve().parents[1]
CANDIDATES = ["float32, contiguous", "float32, channels_last", "bfloat16, contiguous", "bfloat16, channels_last"]


def timed(call: Callable[[], object], steps: int) -> float:
    """Median seconds of one call."""
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def make_inputs(model: BenchModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample, timestep and prompt embeddings."""
    generator = np.random.default_rng(0)
    return (generator.standard_normal((model.batch, 4, model.latent_size, model.latent_size), dtype=np.float32),
            np.full((model.batch,), 500, dtype=np.int64),
            generator.standard_normal((model.batch, 77, model.text_width), dtype=np.float32))


def diffusers_call(folder: Path, inputs: tuple, candidate: str) -> Callable[[], object]:
    """A closure over diffusers' UNet in the dtype and memory format of the candidate."""
    dtype, layout = candidate.split(", ")
    torch_dtype = getattr(torch, dtype)
    unet = UNet2DConditionModel.from_pretrained(folder, torch_dtype=torch_dtype).eval()
    sample, timestep, context = (torch.from_numpy(array) for array in inputs)
    sample, context = sample.to(torch_dtype), context.to(torch_dtype)
    if layout == "channels_last":
        unet = unet.to(memory_format=torch.channels_last)
        sample = sample.to(memory_format=torch.channels_last)

    def call() -> object:
        with torch.inference_mode():
            return unet(sample, timestep, context).sample

    return call


def sdtune_call(folder: Path, inputs: tuple) -> tuple[Callable[[], object], str]:
    """A closure over our UNet in the dtype that sdtune picks for this machine."""
    unet = sdtune.UNet2DConditionModel.from_pretrained(str(folder))
    return (lambda: unet(*inputs)), "float32"


def peak_memory(side: str, model: BenchModel, unet: Path, candidate: str) -> float:
    """GiB that one side holds at most during its forward pass, weights included; see forward_peak.py."""
    command = [sys.executable, "-m", "bench.forward_peak", side, "--model", model.name, "--batch", str(model.batch),
               "--unet", str(unet.resolve()), "--candidate", candidate]
    ended = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    return round(int(ended.stdout) / 2**30, 3)


def measure_forward(model: BenchModel, folder: Path, rounds: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs; NumPy arrays in and out on our side, tensors on theirs."""
    path = write_unet(model, folder)
    inputs = make_inputs(model)
    candidates = {}
    for candidate in CANDIDATES:
        call = diffusers_call(path, inputs, candidate)
        timed(call, model.warm_up)
        candidates[candidate] = timed(call, model.steps)
    best = min(candidates, key=candidates.get)
    peaks = {f"peak_memory_gib_{name}": peak_memory(side, model, path, best)
             for name, side in (("ours", "sdtune"), ("theirs", "diffusers"))}
    theirs = diffusers_call(path, inputs, best)
    ours, our_dtype = sdtune_call(path, inputs)
    timed(ours, model.warm_up), timed(theirs, model.warm_up)
    ours_s, theirs_s = [], []
    for _ in range(rounds):
        ours_s.append(timed(ours, model.steps))
        theirs_s.append(timed(theirs, model.steps))
    return {"what": "UNet forward", "model": describe(model), "our_dtype": our_dtype, "diffusers_best": best,
            "diffusers_candidates_s": {key: round(value, 5) for key, value in candidates.items()},
            **summarize(ours_s, theirs_s), **peaks}

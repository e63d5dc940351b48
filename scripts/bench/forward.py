"""The UNet's forward pass, ours and diffusers', in one process on the same LibTorch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from diffusers import UNet2DConditionModel

import sdtune

from .models import BenchModel, describe, write_unet
from .ratios import summarize

CANDIDATES = [("float32", False), ("float32", True), ("bfloat16", False), ("bfloat16", True)]


def timed(call: Callable[[], object], steps: int) -> float:
    """Median seconds of one call."""
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def diffusers_call(folder: Path, inputs: tuple, dtype: str, channels_last: bool) -> Callable[[], object]:
    """A closure over diffusers' UNet in this dtype and memory format."""
    torch_dtype = getattr(torch, dtype)
    unet = UNet2DConditionModel.from_pretrained(folder, torch_dtype=torch_dtype).eval()
    sample, timestep, context = (torch.from_numpy(array) for array in inputs)
    sample, context = sample.to(torch_dtype), context.to(torch_dtype)
    if channels_last:
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


def measure_forward(model: BenchModel, folder: Path, rounds: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs; NumPy arrays in and out on our side, tensors on theirs."""
    path = write_unet(model, folder)
    generator = np.random.default_rng(0)
    inputs = (generator.standard_normal((model.batch, 4, model.latent_size, model.latent_size), dtype=np.float32),
              np.full((model.batch,), 500, dtype=np.int64),
              generator.standard_normal((model.batch, 77, model.text_width), dtype=np.float32))
    candidates = {}
    for dtype, channels_last in CANDIDATES:
        call = diffusers_call(path, inputs, dtype, channels_last)
        timed(call, model.warm_up)
        candidates[f"{dtype}, {'channels_last' if channels_last else 'contiguous'}"] = timed(call, model.steps)
    best = min(candidates, key=candidates.get)
    theirs = diffusers_call(path, inputs, best.split(", ")[0], best.endswith("channels_last"))
    ours, our_dtype = sdtune_call(path, inputs)
    timed(ours, model.warm_up), timed(theirs, model.warm_up)
    ours_s, theirs_s = [], []
    for _ in range(rounds):
        ours_s.append(timed(ours, model.steps))
        theirs_s.append(timed(theirs, model.steps))
    return {"what": "UNet forward", "model": describe(model), "our_dtype": our_dtype, "diffusers_best": best,
            "diffusers_candidates_s": {key: round(value, 5) for key, value in candidates.items()},
            **summarize(ours_s, theirs_s)}

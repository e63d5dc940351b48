"""A whole image of the bundled base, ours and diffusers', in one process on the same LibTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from diffusers import StableDiffusionPipeline

import sdtune

from .forward import CANDIDATES, timed
from .ratios import summarize

BASE = Path(__file__).resolve().parents[2] / "models" / "portrait-64"
PROMPT = "a photo of a person on a beach"
STEPS, GUIDANCE, SIDE = 30, 7.5, 64  # `sdtune sample`'s own


def diffusers_call(candidate: str) -> Callable[[], object]:
    """Words to pixels in the dtype and memory format of the candidate; without its progress bar and safety checker."""
    dtype, layout = candidate.split(", ")
    pipeline = StableDiffusionPipeline.from_pretrained(BASE, torch_dtype=getattr(torch, dtype), safety_checker=None)
    pipeline.set_progress_bar_config(disable=True)
    if layout == "channels_last":
        for part in (pipeline.unet, pipeline.vae):
            part.to(memory_format=torch.channels_last)

    def call() -> object:
        generator = torch.Generator().manual_seed(1)
        return pipeline(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, generator=generator, output_type="np").images

    return call


def sdtune_call() -> Callable[[], object]:
    pipeline = sdtune.StableDiffusionPipeline.from_pretrained(str(BASE))
    return lambda: pipeline(PROMPT, num_inference_steps=STEPS, guidance_scale=GUIDANCE, seed=1, output_type="np").images


def measure_image(rounds: int, calls: int) -> dict[str, object]:
    """Rounds of ours, theirs, ours, theirs, each of as many images, one after the other."""
    candidates = {}
    for candidate in CANDIDATES:
        call = diffusers_call(candidate)
        timed(call, 1)
        candidates[candidate] = timed(call, calls)
    best = min(candidates, key=candidates.get)
    ours, theirs = sdtune_call(), diffusers_call(best)
    timed(ours, 1), timed(theirs, 1)
    ours_s, theirs_s = [], []
    for _ in range(rounds):
        ours_s.append(timed(ours, calls))
        theirs_s.append(timed(theirs, calls))
    return {"what": f"one picture of portrait-64, {SIDE} px, {STEPS} steps, guidance {GUIDANCE}", "our_dtype": "float32",
            "diffusers_best": best, "diffusers_candidates_s": {key: round(value, 5) for key, value in candidates.items()},
            **summarize(ours_s, theirs_s)}

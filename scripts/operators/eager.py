"""diffusers' eager side on the recorded GPU: the training step of its DreamBooth script, and its pipeline.

A process of its own, because LibTorch must meet the recorded GPU before anything asks for CUDA:

    python -m operators.eager LIBRARY        (in scripts/; prints the record as JSON)
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from .record import Record, read_record

STEPS = 3  # of training; the last one is counted
SAMPLING_STEPS = 25


def run_eager(library: Path) -> Record:
    """Starts that process. Parts: "train VARIANT", "denoising", "decoding"."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0"}
    done = subprocess.run([sys.executable, "-m", "operators.eager", str(library)], cwd=Path(__file__).resolve().parents[1],
                          env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"operators.eager: {done.stderr.strip()}")
    return read_record(json.loads(done.stdout.splitlines()[-1]))


class Recorder:
    """The library, loaded between LibTorch's CUDA part, whose place it takes, and torch, which would ask that."""

    def __init__(self, library: str) -> None:
        torch_folder = importlib.util.find_spec("torch").submodule_search_locations[0]
        ctypes.CDLL(f"{torch_folder}/lib/libtorch_cuda.so", mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self._library.sdtune_record_json.restype = ctypes.c_char_p
        import torch
        torch.cuda._initialized = True  # what follows would ask the driver
        torch.cuda.is_available = lambda: True
        torch.cuda.is_bf16_supported = lambda *_, **__: True
        torch.cuda.is_current_stream_capturing = lambda: False

    def begin(self, part: str) -> None:
        """What follows belongs to that part."""
        self._library.sdtune_record_begin(part.encode())

    def json(self) -> str:
        """The record so far."""
        return self._library.sdtune_record_json().decode()


def train(recorder: Recorder, name: str, weights: str, autocast: bool, rounds: int = 1) -> None:
    """The step of diffusers' DreamBooth example script after encoding: UNet, loss, backward, clipping, AdamW, batch 1 of 512 px.

    autocast: as accelerate does it for mixed_precision bf16, with float32 weights, which that script insists on.
    rounds: gradient accumulation.
    """
    import torch
    import torch.nn.functional as functional
    from diffusers import DDPMScheduler

    from .sd15 import empty_modules
    dtype = getattr(torch, weights)
    unet = empty_modules()["unet"].to(dtype).to_empty(device="cuda").train()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-6)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    scheduler = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
    for step in range(STEPS):
        recorder.begin(f"train {name}" if step == STEPS - 1 else "warm up")
        for _ in range(rounds):
            latents = torch.empty(1, 4, 64, 64, device="cuda", dtype=dtype)
            context = torch.empty(1, 77, 768, device="cuda", dtype=dtype)
            noise = torch.randn_like(latents)
            timesteps = torch.randint(0, 1000, (1,), device="cuda").long()
            noisy = scheduler.add_noise(latents, noise, timesteps)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                prediction = unet(noisy, timesteps, context, return_dict=False)[0]
            loss = functional.mse_loss(prediction.float(), noise.float(), reduction="mean")
            (loss / rounds if rounds > 1 else loss).backward()
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        rates.step()
        optimizer.zero_grad()


def sample(recorder: Recorder) -> None:
    """StableDiffusionPipeline in bfloat16 with the product's scheduler, from prompt embeddings on; its second image."""
    import torch
    from diffusers import DPMSolverMultistepScheduler, StableDiffusionPipeline

    from .sd15 import BUNDLED, empty_modules
    modules = {name: module.to(torch.bfloat16).to_empty(device="cuda") for name, module in empty_modules().items()}
    pipeline = StableDiffusionPipeline(
        vae=modules["vae"].eval(), unet=modules["unet"].eval(), text_encoder=None, tokenizer=None,
        scheduler=DPMSolverMultistepScheduler.from_pretrained(BUNDLED, subfolder="scheduler"), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False)
    pipeline.set_progress_bar_config(disable=True)
    embeds = torch.empty(1, 77, 768, device="cuda", dtype=torch.bfloat16)

    def name_part(_pipeline: object, step: int, _timestep: object, values: dict) -> dict:
        if step == 0:
            recorder.begin("denoising")
        if step == SAMPLING_STEPS - 1:
            recorder.begin("after denoising")
        return values

    with torch.no_grad():
        for image in range(2):
            recorder.begin("warm up" if image == 0 else "before denoising")
            pipeline(prompt_embeds=embeds, negative_prompt_embeds=embeds, num_inference_steps=SAMPLING_STEPS,
                     guidance_scale=7.5, generator=torch.Generator().manual_seed(0), output_type="np",
                     callback_on_step_end=name_part if image == 1 else None)


def main() -> None:
    """Counts every part and prints them."""
    recorder = Recorder(sys.argv[1])
    train(recorder, "bf16", "float32", autocast=True)
    train(recorder, "bf16, 4 rounds", "float32", autocast=True, rounds=4)
    train(recorder, "pure bf16", "bfloat16", autocast=False)
    train(recorder, "float32", "float32", autocast=False)
    sample(recorder)
    print(recorder.json())


if __name__ == "__main__":
    main()

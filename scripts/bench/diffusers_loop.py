#!/usr/bin/env python3
"""The other side of the training benchmark: a plain PyTorch loop over diffusers' UNet, as train_dreambooth.py does it.

Latents and prompt embeddings are given, as from a cache, so that both sides do the same work: noise, timesteps, forward,
loss, backward, clipping at 1, AdamW with float32 state. The fused AdamW is used, the fastest that PyTorch has on a CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from diffusers import DDPMScheduler, UNet2DConditionModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, required=True)
    parser.add_argument("--latent-size", type=int, required=True)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    unet = UNet2DConditionModel.from_pretrained(options.base / "unet").train()
    scheduler = DDPMScheduler.from_pretrained(options.base / "scheduler")
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    unet = unet.to(memory_format=layout)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5, weight_decay=1e-2, fused=True)
    torch.manual_seed(0)
    latents = torch.randn(options.batch, 4, options.latent_size, options.latent_size)
    context = torch.randn(options.batch, 77, unet.config.cross_attention_dim)
    seconds = []
    for _ in range(options.warm_up + options.steps):
        started = time.perf_counter()
        noise = torch.randn_like(latents)
        timesteps = torch.randint(0, 1000, (options.batch,))
        noisy = scheduler.add_noise(latents, noise, timesteps).to(memory_format=layout)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.dtype == "bfloat16"):
            prediction = unet(noisy, timesteps, context).sample
        loss = torch.nn.functional.mse_loss(prediction.float(), noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        seconds.append(time.perf_counter() - started)
    options.output.write_text(json.dumps({"seconds": seconds[options.warm_up:]}))


if __name__ == "__main__":
    main()

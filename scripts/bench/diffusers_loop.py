#!/usr/bin/env python3
"""The other side of the training benchmark: a plain PyTorch loop over diffusers' UNet, as train_dreambooth.py does it.

Latents are given, as from a cache, and prompt embeddings where the text encoder is not trained, so that both sides do the same work: noise,
timesteps, forward, loss, backward, clipping at 1, AdamW with float32 state. A trained text encoder gets each sample's caption here, as in
train_dreambooth.py; sdtune encodes one that several samples of a step share once. The fused AdamW is used, the fastest that PyTorch has on a CPU, and
diffusers' average of the weights by lists of tensors, its faster one.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from diffusers import DDPMScheduler, UNet2DConditionModel
from diffusers.training_utils import EMAModel, cast_training_params


@dataclass
class Trained:
    """Networks, and their trainable parameters."""

    unet: torch.nn.Module
    text_encoder: torch.nn.Module | None
    parameters: list[torch.nn.Parameter]
    averages: list[EMAModel]


def load(options: argparse.Namespace, layout: torch.memory_format) -> Trained:
    frozen = getattr(torch, options.dtype) if options.lora_rank else torch.float32  # as train_dreambooth_lora.py casts what it does not train
    unet = UNet2DConditionModel.from_pretrained(options.base / "unet", torch_dtype=frozen).train().to(memory_format=layout)
    text_encoder = None
    if options.lora_rank:
        from peft import LoraConfig
        unet.requires_grad_(False)
        unet.add_adapter(LoraConfig(r=options.lora_rank, lora_alpha=options.lora_rank, init_lora_weights="gaussian",
                                    target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
        cast_training_params(unet, torch.float32)
    if options.train_text_encoder:
        from transformers import CLIPTextModel
        text_encoder = CLIPTextModel.from_pretrained(options.base / "text_encoder").float().train()  # its file may be of half precision
    networks = [unet, text_encoder] if text_encoder else [unet]
    parameters = [parameter for network in networks for parameter in network.parameters() if parameter.requires_grad]
    averages = [EMAModel(network.parameters(), decay=0.99, foreach=True) for network in networks] if options.average else []
    return Trained(unet, text_encoder, parameters, averages)


def loss_of(prediction: torch.Tensor, noise: torch.Tensor, prior: bool) -> torch.Tensor:
    """The mean squared error; with class images theirs is added, as train_dreambooth.py does."""
    if not prior:
        return torch.nn.functional.mse_loss(prediction.float(), noise)
    ours, theirs = prediction.float().chunk(2)
    wanted, wanted_prior = noise.chunk(2)
    return torch.nn.functional.mse_loss(ours, wanted) + torch.nn.functional.mse_loss(theirs, wanted_prior)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, required=True)
    parser.add_argument("--latent-size", type=int, required=True)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], required=True)
    parser.add_argument("--lora-rank", type=int, default=0, help="train a LoRA of this rank by PEFT instead of the weights")
    parser.add_argument("--train-text-encoder", action="store_true")
    parser.add_argument("--prior", action="store_true", help="as many class images again in each step")
    parser.add_argument("--average", action="store_true", help="diffusers' EMAModel of the trainable parameters")
    parser.add_argument("--compile", action="store_true", help="the networks under torch.compile")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--first-step", type=Path, help="a file that is written once the first step is over")
    options = parser.parse_args()
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    trained = load(options, layout)
    scheduler = DDPMScheduler.from_pretrained(options.base / "scheduler")
    optimizer = torch.optim.AdamW(trained.parameters, lr=1e-5, weight_decay=1e-2, fused=True)
    torch.manual_seed(0)
    batch = options.batch * (2 if options.prior else 1)
    config = trained.unet.config
    latents = torch.randn(batch, config.in_channels, options.latent_size, options.latent_size)
    context = torch.randn(batch, 77, config.cross_attention_dim)
    ids = torch.randint(0, trained.text_encoder.config.vocab_size, (batch, 77)) if trained.text_encoder else None
    unet, text_encoder = trained.unet, trained.text_encoder
    if options.compile:
        unet, text_encoder = torch.compile(unet), torch.compile(text_encoder) if text_encoder is not None else None
    seconds = []
    for _ in range(options.warm_up + options.steps):
        started = time.perf_counter()
        noise = torch.randn_like(latents)
        timesteps = torch.randint(0, 1000, (batch,))
        noisy = scheduler.add_noise(latents, noise, timesteps).to(memory_format=layout)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.dtype == "bfloat16"):
            if text_encoder is not None:
                context = text_encoder(ids)[0]
            prediction = unet(noisy, timesteps, context).sample
        loss = loss_of(prediction, noise, options.prior)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        for average, network in zip(trained.averages, (trained.unet, trained.text_encoder)):
            average.step(network.parameters())
        loss.item()
        seconds.append(time.perf_counter() - started)
        if options.first_step and len(seconds) == 1:
            options.first_step.write_text("over\n")
    options.output.write_text(json.dumps({"seconds": seconds[options.warm_up:]}))


if __name__ == "__main__":
    main()

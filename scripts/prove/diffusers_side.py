#!/usr/bin/env python3
"""The side of diffusers in `sdtune prove --against diffusers`, which runs this file in a Python of its own.

    diffusers_side.py check --base DIR
    diffusers_side.py steps --base DIR --record FILE --output FILE --device cpu|cuda:N --rate X --max-grad-norm X --weight-decay X
    diffusers_side.py time  --base DIR --output FILE.json --device cpu|cuda:N --dtype float32|bfloat16|float16 --resolution PX

`steps` repeats recorded steps (train/prove/step_record.h) in float32 with diffusers' UNet and torch.optim.AdamW, and writes a record
of the same layout. `time` is the loop of diffusers' example train_dreambooth.py: float32 weights under autocast, clipping,
fused AdamW; latents and prompt embeddings are given, as sdtune caches them.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from pathlib import Path

import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from safetensors.torch import load_file, save_file

OUT_OF_MEMORY = 4  # exit code, sdtune's own (model/base/error.h)
SAMPLED = 2048  # numbers of a tensor, as train/prove/step_record.cpp takes them


def device_word(text: str) -> str:
    """What --device may say."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", text):
        raise argparse.ArgumentTypeError(f"is unknown (got {text}; allowed: cpu, cuda, cuda:N)")
    return text


def kind_of(device: str) -> str:
    """cpu or cuda."""
    return device.partition(":")[0]


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Up to SAMPLED numbers, evenly spread over the tensor in the order of its shape: float64 on the CPU, flat."""
    flat = tensor.detach().reshape(-1)
    count = min(flat.numel(), SAMPLED)
    return flat[(torch.arange(count) * flat.numel() // count).to(flat.device)].to("cpu", torch.float64)


def added_conditions(given: dict[str, torch.Tensor], index: int) -> dict[str, torch.Tensor] | None:
    """SDXL's, or None."""
    if f"text_embeds.{index}" not in given:
        return None
    return {name: given[f"{name}.{index}"] for name in ("text_embeds", "time_ids")}


def repeat_steps(options: argparse.Namespace) -> None:
    """Recorded inputs through diffusers' UNet, its scheduler's noise and target, and torch's AdamW."""
    facts = json.loads(Path(f"{options.record}.json").read_text())
    given = {name: tensor.to(options.device) for name, tensor in load_file(f"{options.record}.safetensors").items()}
    unet = UNet2DConditionModel.from_pretrained(options.base, subfolder="unet").to(options.device).train()
    if kind_of(options.device) == "cuda":
        unet.enable_gradient_checkpointing()
    scheduler = DDPMScheduler.from_pretrained(options.base, subfolder="scheduler")
    optimizer = torch.optim.AdamW(unet.parameters(), lr=options.rate, weight_decay=options.weight_decay)
    starts = {name: sampled(weight) for name, weight in unet.named_parameters()}
    record: dict[str, torch.Tensor] = {}
    losses, norms = [], []
    for index in range(facts["steps"]):
        latents, noise, timesteps = (given[f"{name}.{index}"] for name in ("latents", "noise", "timesteps"))
        noisy = scheduler.add_noise(latents, noise, timesteps)
        kind = scheduler.config.prediction_type
        target = noise if kind == "epsilon" else latents if kind == "sample" else scheduler.get_velocity(latents, noise, timesteps)
        predicted = unet(noisy, timesteps, given[f"context.{index}"], added_cond_kwargs=added_conditions(given, index)).sample
        loss = torch.nn.functional.mse_loss(predicted, target)
        loss.backward()
        if index == 0:
            record |= {f"gradient.unet.{name}": sampled(weight.grad).float() for name, weight in unet.named_parameters()}
        norms.append(float(torch.nn.utils.clip_grad_norm_(unet.parameters(), options.max_grad_norm)))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss))
    record |= {f"change.unet.{name}": (sampled(weight) - starts[name]).float() for name, weight in unet.named_parameters()}
    record |= {"losses": torch.tensor(losses), "norms": torch.tensor(norms)}
    save_file(record, f"{options.output}.safetensors")
    Path(f"{options.output}.json").write_text(json.dumps({"steps": facts["steps"], "dtype": "float32"}))


def peak_bytes(device: str) -> int:
    """Of LibTorch's allocator on a GPU, of this process on a CPU."""
    if kind_of(device) == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def time_steps(options: argparse.Namespace) -> None:
    """Median seconds of a step, and the peak."""
    unet = UNet2DConditionModel.from_pretrained(options.base, subfolder="unet").to(options.device).train()
    vae = AutoencoderKL.load_config(options.base, subfolder="vae")
    factor = 2 ** (len(vae["block_out_channels"]) - 1)
    side = options.resolution // factor if options.resolution else unet.config.sample_size
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5, weight_decay=1e-2, fused=True)
    width, dtype = unet.config.cross_attention_dim, getattr(torch, options.dtype)
    context = torch.randn(1, 77, width if isinstance(width, int) else width[0], device=options.device)
    added = None
    if getattr(unet.config, "addition_embed_type", None) == "text_time":
        pooled = unet.config.projection_class_embeddings_input_dim - 6 * unet.config.addition_time_embed_dim
        added = {"text_embeds": torch.randn(1, pooled, device=options.device), "time_ids": torch.zeros(1, 6, device=options.device)}
    scaler = torch.amp.GradScaler(kind_of(options.device), enabled=dtype == torch.float16)
    seconds = []
    for _ in range(options.warm_up + options.steps):
        started = time.perf_counter()
        noise = torch.randn(1, unet.config.in_channels, side, side, device=options.device)
        timesteps = torch.randint(0, 1000, (1,), device=options.device)
        with torch.autocast(kind_of(options.device), dtype=dtype, enabled=dtype != torch.float32):
            predicted = unet(noise, timesteps, context, added_cond_kwargs=added).sample
        scaler.scale(torch.nn.functional.mse_loss(predicted.float(), noise)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if kind_of(options.device) == "cuda":
            torch.cuda.synchronize(options.device)
        seconds.append(time.perf_counter() - started)
    found = {"seconds_a_step": statistics.median(seconds[options.warm_up:]), "peak_bytes": peak_bytes(options.device)}
    options.output.write_text(json.dumps(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "steps", "time"])
    parser.add_argument("--base", required=True)
    parser.add_argument("--record")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--device", type=device_word, default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--resolution", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--weight-decay", type=float, default=1e-2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=5)
    options = parser.parse_args()
    is_gpu = kind_of(options.device) == "cuda"
    if is_gpu:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if options.what == "check" and is_gpu and not torch.cuda.is_available():
        print("torch finds no GPU", file=sys.stderr)
        return 1
    try:
        if is_gpu:
            torch.cuda.set_device(options.device)
        if options.what == "steps":
            repeat_steps(options)
        elif options.what == "time":
            time_steps(options)
    except torch.OutOfMemoryError as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return OUT_OF_MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What scripts/gpu/measure.py compares with: diffusers doing the same on the same device."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import torch
from diffusers import AutoencoderKL, StableDiffusionPipeline, UNet2DConditionModel
from safetensors.torch import load_file, save_file
from transformers import CLIPTextModel


def synchronize(device: str) -> None:
    """Waits for everything queued on a GPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def write_inputs(folder: Path, path: Path) -> None:
    """One batch of two for every network of the folder, the same for both sides."""
    unet, vae = UNet2DConditionModel.load_config(folder / "unet"), AutoencoderKL.load_config(folder / "vae")
    draw = torch.Generator().manual_seed(0)
    side, image = unet["sample_size"], vae["sample_size"]
    save_file({
        "sample": torch.randn(2, unet["in_channels"], side, side, generator=draw),
        "timestep": torch.tensor([3, 700]),
        "context": torch.randn(2, 77, unet["cross_attention_dim"], generator=draw),
        "ids": torch.randint(0, 49_405, (2, 77), generator=draw),
        "image": torch.rand(2, 3, image, image, generator=draw) * 2 - 1,
    }, path)


def diffusers_outputs(folder: Path, inputs: Path, device: str, dtype: str) -> dict[str, torch.Tensor]:
    """Names as device_probe writes them; float32 on the CPU."""
    real = getattr(torch, dtype)
    given = {name: tensor.to(device, real if tensor.is_floating_point() else None)
             for name, tensor in load_file(inputs).items()}
    unet = UNet2DConditionModel.from_pretrained(folder / "unet", torch_dtype=real).to(device)
    prediction = unet(given["sample"], given["timestep"], given["context"]).sample
    prediction.float().pow(2).mean().backward()
    outputs = {"unet": prediction} | {f"grad.{name}": weight.grad for name, weight in unet.named_parameters()}
    with torch.no_grad():
        text = CLIPTextModel.from_pretrained(folder / "text_encoder", dtype=real).to(device)
        outputs["text"] = text(given["ids"]).last_hidden_state
        vae = AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=real).to(device)
        outputs["mean"] = vae.encode(given["image"]).latent_dist.mean
        outputs["decoded"] = vae.decode(given["sample"]).sample
    return {name: tensor.detach().float().cpu() for name, tensor in outputs.items()}


def timed_loop(unet: UNet2DConditionModel, device: str, dtype: torch.dtype, batch: int, steps: int,
               layout: torch.memory_format) -> float:
    """Median seconds of a step of train_dreambooth.py's loop: float32 weights under autocast, fused AdamW, clipping."""
    unet = unet.to(device, memory_format=layout).train()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5, weight_decay=1e-2, fused=True)
    side = unet.config.sample_size
    context = torch.randn(batch, 77, unet.config.cross_attention_dim, device=device)
    seconds = []
    for _ in range(steps + 5):
        synchronize(device)
        started = time.perf_counter()
        noise = torch.randn(batch, 4, side, side, device=device).to(memory_format=layout)
        timesteps = torch.randint(0, 1000, (batch,), device=device)
        with torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
            prediction = unet(noise, timesteps, context).sample
        torch.nn.functional.mse_loss(prediction.float(), noise).backward()
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        synchronize(device)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[5:])


def diffusers_training(folder: Path, device: str, dtype: str, batch: int, steps: int) -> dict[str, float]:
    """Both memory formats; the faster is diffusers' best."""
    layouts = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
    return {name: timed_loop(UNet2DConditionModel.from_pretrained(folder / "unet"), device, getattr(torch, dtype), batch,
                             steps, layout) for name, layout in layouts.items()}


def diffusers_sampling(folder: Path, device: str, dtype: str, steps: int) -> float:
    """Seconds of one image's latents with guidance 7.5, the faster of two runs after one to warm up."""
    pipe = StableDiffusionPipeline.from_pretrained(folder, torch_dtype=getattr(torch, dtype),
                                                   safety_checker=None).to(device)
    pipe.set_progress_bar_config(disable=True)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        pipe("a photo of a cat", num_inference_steps=steps, output_type="latent")
        synchronize(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])

#!/usr/bin/env python3
"""The side of diffusers of the whole commands that scripts/bench.py measures, as its users' scripts do them. Prints JSON.

    diffusers_tasks.py class-images --base DIR --photos DIR --count N --output DIR    class images by a pipeline, then encode as below
    diffusers_tasks.py encode --base DIR --photos DIR --output DIR                    latents of photos and the prompt's embedding
    diffusers_tasks.py start --base DIR --output DIR                                  one image of the base, words to PNG
    diffusers_tasks.py export --base DIR --output DIR                                 a pipeline's save_pretrained
    diffusers_tasks.py checkpoint --base DIR --output DIR                             UNet, and AdamW's state, as accelerate writes them
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch

PROMPT = "a photo of a person"
BATCH = 4  # of class images, as in train_dreambooth.py


def pipeline_of(options: argparse.Namespace, **parts: None):  # noqa: ANN201 (diffusers is imported here: start is to include it)
    """Without the parts that are None."""
    from diffusers import StableDiffusionPipeline
    pipeline = StableDiffusionPipeline.from_pretrained(options.base, torch_dtype=getattr(torch, options.dtype), safety_checker=None, **parts)
    pipeline.set_progress_bar_config(disable=True)
    if options.layout == "channels_last":
        for part in filter(None, (pipeline.unet, pipeline.vae)):
            part.to(memory_format=torch.channels_last)
    return pipeline


def read_photo(path: Path, side: int) -> torch.Tensor:
    """[3, side, side] in [-1, 1]: resized, and the middle taken."""
    import numpy as np
    from PIL import Image
    image = Image.open(path).convert("RGB")
    scale = side / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.BILINEAR)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    pixels = np.asarray(image.crop((left, top, left + side, top + side)), dtype=np.float32)
    return torch.from_numpy(pixels).permute(2, 0, 1) / 127.5 - 1


@torch.inference_mode()
def encode(options: argparse.Namespace, pipeline, photos: list[Path]) -> None:  # noqa: ANN001
    from safetensors.torch import save_file
    unet = json.loads((options.base / "unet" / "config.json").read_text())
    side = unet["sample_size"] * 2 ** (len(pipeline.vae.config.block_out_channels) - 1)
    kept = {}
    for photo in photos:
        image = read_photo(photo, side)[None].to(getattr(torch, options.dtype))
        moments = pipeline.vae.encode(image).latent_dist
        kept |= {f"{photo.stem}.mean": moments.mean.float().contiguous(), f"{photo.stem}.std": moments.std.float().contiguous()}
    tokens = pipeline.tokenizer(PROMPT, padding="max_length", max_length=77, truncation=True, return_tensors="pt")
    kept["prompt"] = pipeline.text_encoder(tokens.input_ids)[0].float().contiguous()
    save_file(kept, options.output / "latents.safetensors")


def class_images(options: argparse.Namespace) -> None:
    pipeline, made = pipeline_of(options), []
    for first in range(0, options.count, BATCH):
        generator = torch.Generator().manual_seed(first)
        images = pipeline(PROMPT, num_images_per_prompt=min(BATCH, options.count - first), num_inference_steps=20, guidance_scale=1,
                          generator=generator).images
        for index, image in enumerate(images):
            made.append(options.output / f"{first + index:05d}.png")
            image.save(made[-1])
    encode(options, pipeline, [*sorted(options.photos.glob("*.png")), *made])


def start(options: argparse.Namespace) -> None:
    pipeline_of(options)(PROMPT, num_inference_steps=30, guidance_scale=7.5, generator=torch.Generator().manual_seed(0)).images[0].save(
        options.output / "image.png")


def sync(folder: Path) -> None:
    """Waits until the disk has every file, as sdtune does."""
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def seconds_of_export(options: argparse.Namespace) -> float:
    pipeline = pipeline_of(options)
    started = time.perf_counter()
    pipeline.save_pretrained(options.output / "model")
    sync(options.output)
    return time.perf_counter() - started


def seconds_of_checkpoint(options: argparse.Namespace) -> float:
    """accelerate's save_state: the model by safetensors, the optimizer by torch.save."""
    from diffusers import UNet2DConditionModel
    from safetensors.torch import save_file
    unet = UNet2DConditionModel.from_pretrained(options.base, subfolder="unet", torch_dtype=torch.float32)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5)
    for weight in unet.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    started = time.perf_counter()
    save_file({name: weight.contiguous() for name, weight in unet.state_dict().items()}, options.output / "model.safetensors")
    torch.save(optimizer.state_dict(), options.output / "optimizer.bin")
    sync(options.output)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["class-images", "encode", "start", "export", "checkpoint"])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--layout", default="contiguous")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    found = {}
    if options.task == "class-images":
        class_images(options)
    elif options.task == "encode":
        encode(options, pipeline_of(options, unet=None), sorted(options.photos.glob("*.png")))  # which encoding does not need
    elif options.task == "start":
        start(options)
    elif options.task == "export":
        found["seconds"] = seconds_of_export(options)
    else:
        found["seconds"] = seconds_of_checkpoint(options)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

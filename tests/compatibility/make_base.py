#!/usr/bin/env python3
"""Writes the base model and the photos that make_fixtures.sh trains from.

    .venv/bin/python tests/compatibility/make_base.py FOLDER

A Stable Diffusion of 30 thousand random weights with portrait-64's tokenizer, four photos, of which two have
captions, and a mask.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from PIL import Image
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

ROOT = Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "models" / "portrait-64" / "tokenizer"
WIDTH, SIDE = 16, 32
CAPTIONS = ["a photo of sks person", "a photo of sks person at the beach", None, None]


def make_unet() -> UNet2DConditionModel:
    """Norm groups of several channels, so that every bias has a gradient."""
    return UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(8, 8), norm_num_groups=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=WIDTH, attention_head_dim=2)


def make_vae() -> AutoencoderKL:
    """Factor 4."""
    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(4, 4, 8), layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3, norm_num_groups=4,
        sample_size=SIDE, scaling_factor=0.18215)


def make_text_encoder() -> CLIPTextModel:
    """One layer over portrait-64's vocabulary."""
    vocabulary = json.loads((TOKENIZER / "vocab.json").read_text())
    start, end = vocabulary["<|startoftext|>"], vocabulary["<|endoftext|>"]
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=len(vocabulary), hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=77, hidden_act="quick_gelu", bos_token_id=start,
        eos_token_id=end, pad_token_id=end))


def write_base(folder: Path) -> None:
    """A folder that says that it generates rendered people, which identity evaluations ask for."""
    torch.manual_seed(0)
    scheduler = DDIMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1,
                              set_alpha_to_one=False, clip_sample=False)
    StableDiffusionPipeline(
        vae=make_vae(), text_encoder=make_text_encoder(), tokenizer=CLIPTokenizer.from_pretrained(str(TOKENIZER)),
        unet=make_unet(), scheduler=scheduler, safety_checker=None, feature_extractor=None,
        requires_safety_checker=False).save_pretrained(folder)
    shutil.rmtree(folder / "tokenizer")
    shutil.copytree(TOKENIZER, folder / "tokenizer")
    (folder / "sdtune.json").write_text('{"rendered_people": true}\n')
    (folder / "sdtune_defaults.yaml").write_text("lr_warmup_steps: 1\n")


def write_photos(folder: Path) -> None:
    """Smooth random images, the last one of another size."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for index, caption in enumerate(CAPTIONS):
        coarse = Image.fromarray(draw.integers(0, 256, (4, 4, 3), dtype=np.uint8))
        size = (SIDE, SIDE) if index < 3 else (48, 40)
        coarse.resize(size, Image.Resampling.BICUBIC).save(folder / f"{index}.png")
        if caption:
            (folder / f"{index}.txt").write_text(caption + "\n")


def write_mask(path: Path) -> None:
    """For a rendered photo of 64 px."""
    mask = np.zeros((64, 64), dtype=np.uint8)
    mask[12:52, 16:48] = 255
    Image.fromarray(mask).save(path)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write_base(target / "base")
    write_photos(target / "photos")
    write_mask(target / "mask.png")

#!/usr/bin/env python3
"""Writes a small Stable Diffusion folder with random weights: for tests, speed and parity.

    .venv/bin/python scripts/make_tiny_base.py models/tiny-random

The UNet has about 10 M parameters and works on 64-pixel images (16 x 16 latents); the tokenizer has CLIP's real
vocabulary. A model with random weights generates noise: it shows that everything runs, and speed and parity are measured on
it. The weights depend on --seed alone.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from clip_vocabulary import write_clip_vocabulary
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

TEXT_WIDTH = 128


def make_unet() -> UNet2DConditionModel:
    """About 10 M parameters; no attention at the top level, where it costs most and helps least."""
    return UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(64, 128, 192),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=TEXT_WIDTH, attention_head_dim=4, norm_num_groups=32)


def make_vae() -> AutoencoderKL:
    """Factor 4. The scaling factor brings the latents of noise images to unit variance, as training did for real ones."""
    vae = AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(32, 64, 64), layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3, norm_num_groups=32,
        sample_size=64)
    with torch.no_grad():
        coarse = torch.rand(16, 3, 8, 8) * 2 - 1
        images = torch.nn.functional.interpolate(coarse, size=64, mode="bilinear")
        scale = 1 / vae.encode(images).latent_dist.mean.std().item()
    vae.register_to_config(scaling_factor=round(scale, 5))
    return vae


def make_text_encoder(vocabulary: int) -> CLIPTextModel:
    """Four layers over CLIP's vocabulary."""
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=vocabulary, hidden_size=TEXT_WIDTH, intermediate_size=4 * TEXT_WIDTH, num_hidden_layers=4,
        num_attention_heads=4, max_position_embeddings=77, hidden_act="quick_gelu", bos_token_id=49406,
        eos_token_id=49407, pad_token_id=49407))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    partial = options.folder.with_name(options.folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    write_clip_vocabulary(partial / "tokenizer")
    tokenizer = CLIPTokenizer.from_pretrained(str(partial / "tokenizer"))
    scheduler = DDIMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1,
                              set_alpha_to_one=False, clip_sample=False)
    pipeline = StableDiffusionPipeline(
        vae=make_vae(), text_encoder=make_text_encoder(len(tokenizer)), tokenizer=tokenizer, unet=make_unet(),
        scheduler=scheduler, safety_checker=None, feature_extractor=None, requires_safety_checker=False)
    pipeline.save_pretrained(partial)
    shutil.rmtree(options.folder, ignore_errors=True)
    partial.rename(options.folder)
    parameters = sum(p.numel() for p in pipeline.unet.parameters())
    print(f"{options.folder}: UNet of {parameters / 1e6:.1f} M parameters, random weights, seed {options.seed}")


if __name__ == "__main__":
    main()

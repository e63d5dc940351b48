"""The model sizes that are measured, and folders of them with random weights that both sides load."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image


@dataclass(frozen=True)
class BenchModel:
    """One UNet size with the batch it is measured at. latent_size in latent pixels; the bench VAE has factor 8 or 4."""

    name: str
    unet: dict[str, object]
    latent_size: int
    vae_blocks: tuple[int, ...]
    batch: int
    steps: int
    warm_up: int

    def with_overrides(self, batch: int | None, steps: int | None) -> BenchModel:
        """The same model at another batch or step count; None keeps."""
        return replace(self, batch=batch or self.batch, steps=steps or self.steps)

    @property
    def text_width(self) -> int:
        """Width of the prompt embeddings that the UNet attends to."""
        return int(self.unet["cross_attention_dim"])

    @property
    def resolution(self) -> int:
        """Pixels of an image's side."""
        return self.latent_size * 2 ** (len(self.vae_blocks) - 1)


MODELS = {
    "10m": BenchModel(
        "10m",
        dict(sample_size=16, layers_per_block=1, block_out_channels=(64, 128, 192), cross_attention_dim=128,
             attention_head_dim=4, norm_num_groups=32,
             down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
             up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D")),
        latent_size=16, vae_blocks=(32, 32, 32), batch=8, steps=20, warm_up=5),
    "sd15": BenchModel(
        "sd15",
        dict(sample_size=64, layers_per_block=2, block_out_channels=(320, 640, 1280, 1280), cross_attention_dim=768,
             attention_head_dim=8, norm_num_groups=32),
        latent_size=64, vae_blocks=(32, 32, 32, 32), batch=1, steps=3, warm_up=1),
}


def write_unet(model: BenchModel, folder: Path) -> Path:
    """unet/ with diffusers' random weights under seed 0; made once."""
    from diffusers import UNet2DConditionModel
    target = folder / f"{model.name}-unet"
    if not (target / "config.json").is_file():
        torch.manual_seed(0)
        UNet2DConditionModel(**model.unet).save_pretrained(target)
    return target


def write_vae(folder: Path) -> Path:
    """Stable Diffusion's autoencoder with diffusers' random weights under seed 0; made once."""
    from diffusers import AutoencoderKL
    target = folder / "sd-vae"
    if not (target / "config.json").is_file():
        torch.manual_seed(0)
        AutoencoderKL(block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, sample_size=512,
                      down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4).save_pretrained(target)
    return target


def write_text_encoder(folder: Path) -> Path:
    """SD 1.5's text encoder with transformers' random weights under seed 0; made once."""
    from transformers import CLIPTextConfig, CLIPTextModel
    target = folder / "sd15-text-encoder"
    if not (target / "config.json").is_file():
        torch.manual_seed(0)
        CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                                     bos_token_id=49406, eos_token_id=49407, pad_token_id=1)).save_pretrained(target)
    return target


def write_pipeline(model: BenchModel, folder: Path) -> Path:
    """A whole Stable Diffusion folder around that UNet; VAE and text encoder are small, since they are cached in training."""
    from clip_vocabulary import write_clip_vocabulary
    from diffusers import AutoencoderKL, DDPMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer
    target = folder / f"{model.name}-pipeline"
    if (target / "model_index.json").is_file():
        return target
    unet = UNet2DConditionModel.from_pretrained(write_unet(model, folder))
    blocks = len(model.vae_blocks)
    vae = AutoencoderKL(block_out_channels=model.vae_blocks, layers_per_block=1, latent_channels=4,
                        sample_size=model.resolution, down_block_types=("DownEncoderBlock2D",) * blocks,
                        up_block_types=("UpDecoderBlock2D",) * blocks)
    write_clip_vocabulary(folder / "tokenizer")
    tokenizer = CLIPTokenizer.from_pretrained(str(folder / "tokenizer"))
    text = CLIPTextModel(CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=model.text_width, intermediate_size=model.text_width * 2,
        num_hidden_layers=1, num_attention_heads=4, bos_token_id=49406, eos_token_id=49407, pad_token_id=49407))
    scheduler = DDPMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, clip_sample=False)
    StableDiffusionPipeline(vae=vae, text_encoder=text, tokenizer=tokenizer, unet=unet, scheduler=scheduler,
                            safety_checker=None, feature_extractor=None, requires_safety_checker=False
                            ).save_pretrained(target)
    return target


def write_full_pipeline(model: BenchModel, folder: Path) -> Path:
    """The UNet with autoencoder and text encoder of SD 1.5's sizes, and its default sampler."""
    from clip_vocabulary import write_clip_vocabulary
    from diffusers import AutoencoderKL, PNDMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer
    target = folder / f"{model.name}-full-pipeline"
    if (target / "model_index.json").is_file():
        return target
    write_clip_vocabulary(folder / "tokenizer")
    scheduler = PNDMScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, skip_prk_steps=True, steps_offset=1,
                              set_alpha_to_one=False)
    StableDiffusionPipeline(
        vae=AutoencoderKL.from_pretrained(write_vae(folder)), text_encoder=CLIPTextModel.from_pretrained(write_text_encoder(folder)),
        tokenizer=CLIPTokenizer.from_pretrained(str(folder / "tokenizer")), unet=UNet2DConditionModel.from_pretrained(write_unet(model, folder)),
        scheduler=scheduler, safety_checker=None, feature_extractor=None, requires_safety_checker=False).save_pretrained(target)
    return target


def write_photos(model: BenchModel, folder: Path, count: int = 4, side: int | None = None) -> Path:
    """Images of noise, at the model's resolution unless `side` px is given."""
    side = side or model.resolution
    target = folder / f"{model.name}-photos-{count}-{side}"
    target.mkdir(exist_ok=True)
    generator = np.random.default_rng(0)
    for index in range(count):
        pixels = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(target / f"{index:04d}.png")
    return target


def describe(model: BenchModel) -> dict[str, object]:
    """For the JSON."""
    return {"name": model.name, "unet": json.loads(json.dumps(model.unet)), "batch": model.batch,
            "latent_size": model.latent_size}

"""Small random Stable Diffusion folders of the three families, made by diffusers, with CLIP's real vocabulary.

They generate in a fraction of a second and have every kind of layer and setting of the family they stand for.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from diffusers import (AutoencoderKL, DDIMScheduler, EulerDiscreteScheduler, PNDMScheduler, StableDiffusionPipeline,
                       StableDiffusionXLPipeline, UNet2DConditionModel)
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from clip_vocabulary import write_clip_vocabulary  # noqa: E402

BETAS = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}
VOCABULARY = 49_408
FAMILIES = ("sd1", "sd2", "sdxl")


def shake(module: torch.nn.Module) -> torch.nn.Module:
    """Moves norms, biases and other tensors away from 0 and 1, so that one left out or swapped is seen."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return module.eval()


def make_unet(family: str) -> UNet2DConditionModel:
    """Two levels on 8 x 8 latents."""
    settings = {
        "sd1": {"attention_head_dim": 4, "cross_attention_dim": 32},
        "sd2": {"attention_head_dim": (2, 4), "cross_attention_dim": 48, "use_linear_projection": True,
                "upcast_attention": True},
        "sdxl": {"attention_head_dim": (2, 4), "cross_attention_dim": 72, "use_linear_projection": True,
                 "transformer_layers_per_block": (1, 2), "addition_embed_type": "text_time",
                 "addition_time_embed_dim": 8, "projection_class_embeddings_input_dim": 6 * 8 + 40},
    }[family]
    blocks = {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
              "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
    if family == "sdxl":
        blocks = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
                  "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")}
    return shake(UNet2DConditionModel(sample_size=8, in_channels=4, out_channels=4, layers_per_block=2,
                                      block_out_channels=(32, 64), norm_num_groups=32, **blocks, **settings))


def make_vae(family: str) -> AutoencoderKL:
    """Factor 4: images of 32 px."""
    return shake(AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(32, 32, 64), layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3, norm_num_groups=32,
        sample_size=32, scaling_factor=0.13025 if family == "sdxl" else 0.18215, force_upcast=family == "sdxl"))


def make_text_encoder(width: int, activation: str, projection: int = 0, end_token: int = 49407) -> CLIPTextModel:
    """Two layers over CLIP's vocabulary; with a projection where one is asked for."""
    config = CLIPTextConfig(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=77, hidden_act=activation, bos_token_id=49406,
        eos_token_id=end_token, pad_token_id=1, projection_dim=projection or width)
    kind = CLIPTextModelWithProjection if projection else CLIPTextModel
    return shake(kind(config))


def make_tokenizer(folder: Path, pad_token: str = "<|endoftext|>") -> CLIPTokenizer:
    """CLIP's, with the padding of the family."""
    write_clip_vocabulary(folder, pad_token)
    return CLIPTokenizer.from_pretrained(str(folder))


def make_scheduler(family: str) -> object:
    """The class and settings that the family's models are published with."""
    if family == "sdxl":
        return EulerDiscreteScheduler(steps_offset=1, timestep_spacing="leading", **BETAS)
    if family == "sd2":
        return DDIMScheduler(steps_offset=1, set_alpha_to_one=False, clip_sample=False, prediction_type="v_prediction",
                             **BETAS)
    return PNDMScheduler(steps_offset=1, set_alpha_to_one=False, skip_prk_steps=True, **BETAS)


def make_pipeline(family: str, scratch: Path, seed: int = 0) -> StableDiffusionPipeline | StableDiffusionXLPipeline:
    """A diffusers pipeline of random weights; `scratch` takes the vocabulary files that tokenizers are made from."""
    torch.manual_seed(seed)
    parts = {"unet": make_unet(family), "vae": make_vae(family), "scheduler": make_scheduler(family)}
    if family == "sdxl":
        return StableDiffusionXLPipeline(
            text_encoder=make_text_encoder(32, "quick_gelu"), tokenizer=make_tokenizer(scratch / "one"),
            text_encoder_2=make_text_encoder(40, "gelu", projection=40),
            tokenizer_2=make_tokenizer(scratch / "two", "!"), add_watermarker=False, **parts)
    encoder, pad = (make_text_encoder(48, "gelu"), "!") if family == "sd2" else (
        make_text_encoder(32, "quick_gelu", end_token=2), "<|endoftext|>")
    return StableDiffusionPipeline(
        text_encoder=encoder, tokenizer=make_tokenizer(scratch / "one", pad), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False, **parts)


def write_pipeline(family: str, folder: Path, seed: int = 0) -> Path:
    """Writes such a folder and returns it."""
    make_pipeline(family, folder.with_name(folder.name + "-vocabulary"), seed).save_pretrained(folder)
    return folder

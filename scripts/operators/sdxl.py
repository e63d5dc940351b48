"""A model folder of Stable Diffusion XL's size that takes no room: its weights are zeros in sparse files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .sd15 import BUNDLED, TEXT, VAE, write_modules

UNET = dict(sample_size=128, block_out_channels=(320, 640, 1280), layers_per_block=2, cross_attention_dim=2048, attention_head_dim=(5, 10, 20),
            use_linear_projection=True, transformer_layers_per_block=(1, 2, 10), addition_embed_type="text_time", addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816, down_block_types=("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2,
            up_block_types=("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",))
TEXT_2 = dict(TEXT, hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20, hidden_act="gelu", projection_dim=1280)


def write_sdxl(folder: Path) -> Path:
    """Makes `folder`, which must not be there, and returns it."""
    import torch
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection
    marks = json.loads((BUNDLED / "text_encoder" / "config.json").read_text())
    tokens = {name: marks[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    with torch.device("meta"):
        modules = {"unet": UNet2DConditionModel(**UNET), "vae": AutoencoderKL(**{**VAE, "sample_size": 1024}, scaling_factor=0.13025),
                   "text_encoder": CLIPTextModel(CLIPTextConfig(**TEXT, **tokens)),
                   "text_encoder_2": CLIPTextModelWithProjection(CLIPTextConfig(**TEXT_2, **tokens))}
    write_modules(folder, modules)
    for part in ("tokenizer", "tokenizer_2"):
        shutil.copytree(BUNDLED / "tokenizer", folder / part)
    index = json.loads((BUNDLED / "model_index.json").read_text())
    for name in ("requires_safety_checker", "safety_checker", "feature_extractor"):  # Stable Diffusion 1's alone
        index.pop(name, None)
    index |= {"_class_name": "StableDiffusionXLPipeline", "text_encoder_2": ["transformers", "CLIPTextModelWithProjection"],
              "tokenizer_2": ["transformers", "CLIPTokenizer"], "force_zeros_for_empty_prompt": True}
    (folder / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")
    return folder

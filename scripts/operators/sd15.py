"""A model folder of Stable Diffusion 1.5's size that takes no room: its weights are zeros in sparse files."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "models" / "portrait-64"  # its tokenizer and scheduler serve

UNET = dict(sample_size=64, block_out_channels=(320, 640, 1280, 1280), layers_per_block=2, cross_attention_dim=768,
            attention_head_dim=8, down_block_types=("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",),
            up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3)
VAE = dict(sample_size=512, block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4,
           down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)
TEXT = dict(vocab_size=49408, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
            hidden_act="quick_gelu", projection_dim=768)


def empty_modules() -> dict[str, torch.nn.Module]:
    """The three networks, by the name of their folder, on the meta device."""
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel
    marks = json.loads((BUNDLED / "text_encoder" / "config.json").read_text())
    tokens = {name: marks[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    with torch.device("meta"):
        return {"unet": UNet2DConditionModel(**UNET), "vae": AutoencoderKL(**VAE),
                "text_encoder": CLIPTextModel(CLIPTextConfig(**TEXT, **tokens))}


def write_sparse(file: Path, state: dict[str, torch.Tensor]) -> None:
    """A safetensors file of float16 zeros."""
    header: dict[str, object] = {}
    end = 0
    for name, tensor in state.items():
        begin, end = end, end + 2 * tensor.numel()
        header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + end)


def write_modules(folder: Path, modules: dict[str, torch.nn.Module]) -> None:
    """A folder each, below `folder`, which must not be there; and the bundled scheduler."""
    for name, module in modules.items():
        part = folder / name
        part.mkdir(parents=True)
        is_text = name.startswith("text_encoder")
        if is_text:
            module.config.save_pretrained(part)
        else:
            module.save_config(part)
        file = "model.safetensors" if is_text else "diffusion_pytorch_model.safetensors"
        write_sparse(part / file, {key: value for key, value in module.state_dict().items() if "position_ids" not in key})
    shutil.copytree(BUNDLED / "scheduler", folder / "scheduler")


def write_sd15(folder: Path) -> Path:
    """Makes `folder`, which must not be there, and returns it."""
    write_modules(folder, empty_modules())
    shutil.copytree(BUNDLED / "tokenizer", folder / "tokenizer")
    shutil.copy(BUNDLED / "model_index.json", folder)
    return folder

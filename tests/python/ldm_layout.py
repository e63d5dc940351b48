"""An independent statement of the LDM single-file layout: a diffusers pipeline's weights by the names of CompVis' code.

Rules are regular expressions with the arithmetic of uniform UNets (layers_per_block the same in every level); the
program derives its table from the config with running counters instead.
"""

from __future__ import annotations

import json
import re
from math import prod
from pathlib import Path

import torch
from diffusers import AutoencoderKL, StableDiffusionPipeline, StableDiffusionXLPipeline
from safetensors.torch import save_file

Tensors = dict[str, torch.Tensor]

_RESNET = {"norm1": "in_layers.0", "conv1": "in_layers.2", "time_emb_proj": "emb_layers.1", "norm2": "out_layers.0",
           "conv2": "out_layers.3", "conv_shortcut": "skip_connection"}
_UNET_ENDS = {"time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2",
              "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2",
              "conv_in": "input_blocks.0.0", "conv_norm_out": "out.0", "conv_out": "out.2"}
_ATTENTION = {"group_norm": "norm", "to_q": "q", "to_k": "k", "to_v": "v", "to_out.0": "proj_out"}
_OPEN_CLIP = {"layer_norm1": "ln_1", "layer_norm2": "ln_2", "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj",
              "self_attn.out_proj": "attn.out_proj"}


def unet_name(name: str, layers: int, attends: list[bool]) -> str:
    """`attends`: whether each up block has transformers."""
    stem, kind = name.rsplit(".", 1)
    if stem in _UNET_ENDS:
        return f"{_UNET_ENDS[stem]}.{kind}"
    if match := re.fullmatch(r"mid_block\.(resnets|attentions)\.(\d)\.(.+)", name):
        part, index, rest = match.groups()
        if part == "attentions":
            return f"middle_block.1.{rest}"
        layer, kind = rest.rsplit(".", 1)
        return f"middle_block.{2 * int(index)}.{_RESNET[layer]}.{kind}"
    side, block, part, index, rest = re.fullmatch(r"(down|up)_blocks\.(\d+)\.(\w+)\.(\d+)\.(.+)", name).groups()
    i, j = int(block), int(index)
    number = f"input_blocks.{(layers + 1) * i + j + 1}" if side == "down" else f"output_blocks.{(layers + 1) * i + j}"
    if part == "downsamplers":
        return f"input_blocks.{(layers + 1) * (i + 1)}.0.op.{kind}"
    if part == "upsamplers":
        return f"output_blocks.{(layers + 1) * i + layers}.{2 if attends[i] else 1}.conv.{kind}"
    if part == "attentions":
        return f"{number}.1.{rest}"
    layer, kind = rest.rsplit(".", 1)
    return f"{number}.0.{_RESNET[layer]}.{kind}"


def vae_name(name: str, levels: int) -> str:
    name = re.sub(r"encoder\.down_blocks\.(\d)\.resnets\.", r"encoder.down.\1.block.", name)
    name = re.sub(r"encoder\.down_blocks\.(\d)\.downsamplers\.0\.", r"encoder.down.\1.downsample.", name)
    if match := re.match(r"decoder\.up_blocks\.(\d)\.(resnets|upsamplers\.0)\.", name):
        part = "block" if match[2] == "resnets" else "upsample"
        name = f"decoder.up.{levels - 1 - int(match[1])}.{part}.{name[match.end():]}"
    name = re.sub(r"mid_block\.resnets\.(\d)\.", lambda m: f"mid.block_{int(m[1]) + 1}.", name)
    if match := re.fullmatch(r"(\w+)\.mid_block\.attentions\.0\.(.+)\.(weight|bias)", name):
        name = f"{match[1]}.mid.attn_1.{_ATTENTION[match[2]]}.{match[3]}"
    return name.replace("conv_shortcut", "nin_shortcut").replace("conv_norm_out", "norm_out")


def ldm_vae(vae: AutoencoderKL) -> Tensors:
    """Its attention as convolutions."""
    out: Tensors = {}
    for name, tensor in vae.state_dict().items():
        name = vae_name(name, len(vae.config.block_out_channels))
        one_by_one = ".attn_1." in name and tensor.ndim == 2
        out[name] = tensor[:, :, None, None] if one_by_one else tensor
    return out


def open_clip(state: Tensors) -> Tensors:
    """OpenCLIP's text tower: stacked projections, transposed text_projection."""
    out: Tensors = {}
    for name, tensor in state.items():
        name = name.removeprefix("text_model.")
        match = re.fullmatch(r"encoder\.layers\.(\d+)\.(.+)\.(weight|bias)", name)
        if name == "text_projection.weight":
            out["text_projection"] = tensor.T
        elif not match:
            out[{"embeddings.token_embedding.weight": "token_embedding.weight",
                 "embeddings.position_embedding.weight": "positional_embedding",
                 "final_layer_norm.weight": "ln_final.weight", "final_layer_norm.bias": "ln_final.bias"}[name]] = tensor
        elif match[2] in _OPEN_CLIP:
            out[f"transformer.resblocks.{match[1]}.{_OPEN_CLIP[match[2]]}.{match[3]}"] = tensor
        elif match[2] == "self_attn.q_proj":
            stack = [state[key] for key in (_with(state, name, part) for part in ("q_proj", "k_proj", "v_proj"))]
            out[f"transformer.resblocks.{match[1]}.attn.in_proj_{match[3]}"] = torch.cat(stack)
    return out


def _with(state: Tensors, name: str, part: str) -> str:
    """The neighbour of a q_proj, with or without the prefix that transformers writes or leaves out."""
    neighbour = name.replace("q_proj", part)
    return neighbour if neighbour in state else f"text_model.{neighbour}"


def clip(state: Tensors) -> Tensors:
    """OpenAI's CLIP as old transformers named it."""
    return {name if name.startswith("text_model.") else f"text_model.{name}": tensor for name, tensor in state.items()}


def ldm_tensors(pipe: StableDiffusionPipeline | StableDiffusionXLPipeline, family: str) -> Tensors:
    """Every weight under its LDM name."""
    config = pipe.unet.config
    attends = [kind.startswith("CrossAttn") for kind in config.up_block_types]
    out = {f"model.diffusion_model.{unet_name(name, config.layers_per_block, attends)}": tensor
           for name, tensor in pipe.unet.state_dict().items()}
    out |= {f"first_stage_model.{name}": tensor for name, tensor in ldm_vae(pipe.vae).items()}
    text = pipe.text_encoder.state_dict()
    if family == "sd1":
        out |= {f"cond_stage_model.transformer.{name}": tensor for name, tensor in clip(text).items()}
    elif family == "sd2":
        out |= {f"cond_stage_model.model.{name}": tensor for name, tensor in open_clip(text).items()}
    else:
        second = pipe.text_encoder_2.state_dict()
        out |= {f"conditioner.embedders.0.transformer.{name}": tensor for name, tensor in clip(text).items()}
        out |= {f"conditioner.embedders.1.model.{name}": tensor for name, tensor in open_clip(second).items()}
    return {name: tensor.detach().contiguous() for name, tensor in out.items()}


def write_ldm(pipe: StableDiffusionPipeline | StableDiffusionXLPipeline, family: str, path: Path,
              metadata: dict[str, str] | None = None) -> Path:
    save_file({name: tensor.clone() for name, tensor in ldm_tensors(pipe, family).items()}, path,
              {"format": "pt", **(metadata or {})})
    return path


def write_hollow(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> Path:
    """A half-precision file of these names and shapes, its weights a hole in the disk: large ones cost nothing."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + 2 * prod(tensor.shape)
        header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return path

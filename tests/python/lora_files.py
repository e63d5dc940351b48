"""LoRA files as others write them: diffusers with PEFT, and plain statements of kohya's and ComfyUI's names."""

from __future__ import annotations

from pathlib import Path

import torch
from diffusers import StableDiffusionPipeline, StableDiffusionXLPipeline
from diffusers.utils import convert_state_dict_to_diffusers
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save_file

ATTENTION = ["to_q", "to_k", "to_v", "to_out.0"]
WITH_CONVOLUTIONS = [*ATTENTION, "proj_in", "proj_out", "ff.net.0.proj", "ff.net.2", "conv1", "conv2", "conv_shortcut",
                     "downsamplers.0.conv", "upsamplers.0.conv", "time_emb_proj"]
TEXT = ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]


def load_pipeline(folder: Path) -> StableDiffusionPipeline | StableDiffusionXLPipeline:
    """The diffusers pipeline of a tiny folder."""
    kind = StableDiffusionXLPipeline if (folder / "text_encoder_2").is_dir() else StableDiffusionPipeline
    pipe = kind.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def text_encoders(pipe: StableDiffusionPipeline) -> dict[str, torch.nn.Module]:
    """Component -> encoder."""
    found = {name: getattr(pipe, name, None) for name in ("text_encoder", "text_encoder_2")}
    return {name: encoder for name, encoder in found.items() if encoder is not None}


def add_adapters(pipe: StableDiffusionPipeline, rank: int, alpha: float, layers: list[str]) -> None:
    """PEFT adapters on UNet and text encoders with random matrices, so that they change every image."""
    torch.manual_seed(0)
    pipe.unet.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules=layers))
    for encoder in text_encoders(pipe).values():
        encoder.add_adapter(LoraConfig(r=rank, lora_alpha=alpha, target_modules=TEXT))
    for module in (pipe.unet, *text_encoders(pipe).values()):
        for name, parameter in module.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(parameter, std=0.12)


def save_as_diffusers(pipe: StableDiffusionPipeline, folder: Path, rank: int, alpha: float) -> Path:
    """What diffusers' training scripts write."""
    states = {f"{name}_lora_layers": convert_state_dict_to_diffusers(get_peft_model_state_dict(module))
              for name, module in {"unet": pipe.unet, **text_encoders(pipe)}.items()}
    metadata = {f"{name}_lora_adapter_metadata": {"r": rank, "lora_alpha": alpha}
                for name in ("unet", *text_encoders(pipe))}
    type(pipe).save_lora_weights(folder, **states, **metadata)
    return folder / "pytorch_lora_weights.safetensors"


def adapter_layers(module: torch.nn.Module) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Path -> (down, up)."""
    matrices: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in get_peft_model_state_dict(module).items():
        path, which = name.removesuffix(".weight").rsplit(".", 1)
        matrices.setdefault(path, {})[which] = tensor.detach().clone().contiguous()
    return {path: (pair["lora_A"], pair["lora_B"]) for path, pair in matrices.items()}


def save_as_kohya(pipe: StableDiffusionPipeline, path: Path, alpha: float, ldm: dict[str, str]) -> Path:
    """networks/lora.py's names: underscores, lora_te for one text encoder and lora_te1, lora_te2 for two; SDXL's UNet by
    its LDM names, which `ldm` gives for each of diffusers' paths."""
    encoders = text_encoders(pipe)
    tensors = {}
    for component, module in {"unet": pipe.unet, **encoders}.items():
        number = {"text_encoder": "1", "text_encoder_2": "2"}.get(component, "") if len(encoders) == 2 else ""
        prefix = "lora_unet_" if component == "unet" else f"lora_te{number}_"
        for layer, (down, up) in adapter_layers(module).items():
            spelled = ldm[layer] if component == "unet" and len(encoders) == 2 else layer
            if component != "unet" and not spelled.startswith("text_model."):  # transformers 5 leaves it out
                spelled = f"text_model.{spelled}"
            name = prefix + spelled.replace(".", "_")
            tensors[f"{name}.lora_down.weight"] = down
            tensors[f"{name}.lora_up.weight"] = up
            tensors[f"{name}.alpha"] = torch.tensor(float(alpha))
    save_file(tensors, path, metadata={"ss_network_module": "networks.lora"})
    return path


def save_as_comfyui(pipe: StableDiffusionPipeline, path: Path, scale: float, ldm: dict[str, str]) -> Path:
    """The names that its node LoraSave gives (comfy_extras/nodes_lora_extract.py), which has no alpha: `scale` is in the matrices."""
    clips = {"text_encoder": "clip_h" if pipe.text_encoder.config.hidden_act == "gelu" else "clip_l", "text_encoder_2": "clip_g"}
    tensors = {}
    for component, module in {"unet": pipe.unet, **text_encoders(pipe)}.items():
        for layer, (down, up) in adapter_layers(module).items():
            text = layer if layer.startswith("text_model.") else f"text_model.{layer}"
            name = f"diffusion_model.{ldm[layer]}" if component == "unet" else f"text_encoders.{clips[component]}.transformer.{text}"
            tensors[f"{name}.lora_down.weight"] = down
            tensors[f"{name}.lora_up.weight"] = up * scale
    save_file(tensors, path)
    return path

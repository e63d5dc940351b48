"""Small random networks of the three families, made by diffusers and transformers, and what tests measure on them."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

OUTPUT_TOLERANCE = 1e-5
GRADIENT_TOLERANCE = 1e-4

_SMALL = dict(sample_size=16, block_out_channels=(32, 64), norm_num_groups=8)
UNET_CONFIGS = {
    "sd1": dict(_SMALL, layers_per_block=2, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=32, attention_head_dim=4),
    "sd2": dict(_SMALL, layers_per_block=1, down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=48,
                attention_head_dim=(2, 4), use_linear_projection=True, upcast_attention=True),
    "sdxl": dict(_SMALL, layers_per_block=2, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                 up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=64, attention_head_dim=(2, 4),
                 use_linear_projection=True, transformer_layers_per_block=(1, 2), addition_embed_type="text_time",
                 addition_time_embed_dim=8, projection_class_embeddings_input_dim=32 + 6 * 8),
    "nested depths": dict(_SMALL, layers_per_block=(1, 2), down_block_types=("CrossAttnDownBlock2D",) * 2,
                          up_block_types=("CrossAttnUpBlock2D",) * 2, cross_attention_dim=(32, 32),
                          attention_head_dim=4, transformer_layers_per_block=[[2], [1, 2]],
                          reverse_transformer_layers_per_block=[[2, 1, 1], [1, 2]]),
    "rare settings": dict(_SMALL, layers_per_block=1, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                          up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=32,
                          attention_head_dim=4, only_cross_attention=True, act_fn="gelu", norm_eps=1e-4,
                          flip_sin_to_cos=False, freq_shift=1, center_input_sample=True, mid_block_scale_factor=1.5,
                          downsample_padding=0, time_embedding_dim=96, conv_in_kernel=5, conv_out_kernel=1),
    "no attention": dict(_SMALL, layers_per_block=1, down_block_types=("DownBlock2D",) * 2,
                         up_block_types=("UpBlock2D",) * 2, mid_block_type="UNetMidBlock2D", cross_attention_dim=32,
                         attention_head_dim=4),
}
VAE_CONFIGS = {
    "sd": dict(block_out_channels=(16, 32), layers_per_block=2, norm_num_groups=8),
    "16 channels, no quant convs": dict(block_out_channels=(16, 32, 32), layers_per_block=1, norm_num_groups=4,
                                        latent_channels=16, use_quant_conv=False, use_post_quant_conv=False,
                                        shift_factor=0.1, mid_block_add_attention=False),
}
TEXT_CONFIGS = {
    "sd1": (CLIPTextModel, dict(eos_token_id=2, hidden_act="quick_gelu")),
    "sd2": (CLIPTextModel, dict(eos_token_id=99, hidden_act="gelu")),
    "sdxl 1": (CLIPTextModelWithProjection, dict(eos_token_id=2, hidden_act="gelu", projection_dim=24)),
    "sdxl 2": (CLIPTextModelWithProjection, dict(eos_token_id=99, hidden_act="quick_gelu", projection_dim=24)),
}


def stir(module: torch.nn.Module) -> torch.nn.Module:
    """Moves every parameter off its initial value, so that no ones and zeros hide a mistake."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return module.eval()


def make_unet(family: str) -> UNet2DConditionModel:
    torch.manual_seed(1)
    return stir(UNet2DConditionModel(**copy.deepcopy(UNET_CONFIGS[family])))


def make_vae(family: str) -> AutoencoderKL:
    torch.manual_seed(2)
    levels = len(VAE_CONFIGS[family]["block_out_channels"])
    return stir(AutoencoderKL(down_block_types=("DownEncoderBlock2D",) * levels,
                              up_block_types=("UpDecoderBlock2D",) * levels, **VAE_CONFIGS[family]))


def make_text_encoder(family: str) -> torch.nn.Module:
    torch.manual_seed(3)
    kind, options = TEXT_CONFIGS[family]
    return stir(kind(CLIPTextConfig(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=3,
                                    num_attention_heads=4, bos_token_id=98, pad_token_id=99, **options)))


def unet_inputs(config: dict, size: tuple[int, int] = (16, 16)) -> tuple[dict, dict]:
    """(inputs for the call, {"target": ...}) as float32 torch tensors."""
    torch.manual_seed(4)
    width = config["cross_attention_dim"]
    width = width if isinstance(width, int) else width[0]
    inputs = dict(sample=torch.randn(2, 4, *size), timestep=torch.tensor([3, 981]),
                  encoder_hidden_states=torch.randn(2, 77, width))
    if config.get("addition_embed_type"):
        pooled = config["projection_class_embeddings_input_dim"] - 6 * config["addition_time_embed_dim"]
        inputs["added_cond_kwargs"] = dict(text_embeds=torch.randn(2, pooled),
                                           time_ids=torch.randint(0, 1024, (2, 6)).float())
    return inputs, dict(target=torch.randn(2, 4, *size))


def in_double(inputs: dict) -> dict:
    """The same inputs for a module in double precision; whole numbers stay what they are."""
    return {key: in_double(value) if isinstance(value, dict) else value.double() if value.is_floating_point() else value
            for key, value in inputs.items()}


def as_numpy(inputs: dict) -> dict:
    return {key: as_numpy(value) if isinstance(value, dict) else value.numpy() for key, value in inputs.items()}


def relative_error(ours: np.ndarray, reference: torch.Tensor) -> float:
    expected = reference.detach().numpy()
    assert ours.shape == expected.shape
    return float(np.linalg.norm(ours - expected) / np.linalg.norm(expected))


def worst_gradient_error(ours: dict[str, np.ndarray], module: torch.nn.Module, rename=lambda name: name) -> float:
    """The largest |difference| / max(|g|, 1e-6 |all gradients|) over all parameters, which must be the same ones.

    `module` is in double precision: in float32 its own rounding is above the tolerance where a gradient is zero in
    mathematics (a key's bias, which softmax takes out again).
    """
    theirs = {rename(name): parameter.grad.numpy() for name, parameter in module.named_parameters()}
    assert set(ours) == set(theirs)
    assert all(gradient.dtype == np.float64 for gradient in theirs.values())
    norms = {name: float(np.linalg.norm(gradient)) for name, gradient in theirs.items()}
    total = float(np.linalg.norm(list(norms.values())))
    return max(float(np.linalg.norm(ours[name] - gradient)) / max(norms[name], 1e-6 * total)
               for name, gradient in theirs.items())


def save(module: torch.nn.Module, folder: Path) -> str:
    module.save_pretrained(folder)
    return str(folder)

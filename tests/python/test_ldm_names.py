"""The single files that `sdtune convert` writes, read by Stability's own ldm (its UNet and autoencoder) and by OpenCLIP: every name, and the
same outputs. The package is of the time of SD 2.x: it has no SDXL UNet, and SD 1.x's text encoder was transformers' even then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import open_clip
import oracles
import pytest
import torch
from ldm_layout import ldm_tensors
from model_families import unet_inputs
from program import run
from safetensors.torch import load_file
from test_convert import PUBLISHED_UNETS, published_model
from tiny_models import make_pipeline

TOLERANCE = 1e-5
FAMILIES = ["sd1", "sd2"]
# Sizes of tests/python/tiny_models.py in ldm's words.
TINY_UNETS: dict[str, dict[str, Any]] = {
    "sd1": {"model_channels": 32, "channel_mult": [1, 2], "attention_resolutions": [1], "num_heads": 4, "context_dim": 32},
    "sd2": {"model_channels": 32, "channel_mult": [1, 2], "attention_resolutions": [1], "num_head_channels": 16, "context_dim": 48,
            "use_linear_in_transformer": True}}
# Of the configurations that were published with the weights (v1-inference.yaml, v2-inference-v.yaml).
PUBLISHED: dict[str, dict[str, Any]] = {
    "sd1": {"model_channels": 320, "channel_mult": [1, 2, 4, 4], "attention_resolutions": [4, 2, 1], "num_heads": 8, "context_dim": 768},
    "sd2": {"model_channels": 320, "channel_mult": [1, 2, 4, 4], "attention_resolutions": [4, 2, 1], "num_head_channels": 64,
            "context_dim": 1024, "use_linear_in_transformer": True}}
TINY_VAE = {"ch": 32, "ch_mult": [1, 1, 2], "num_res_blocks": 1}
PUBLISHED_VAE = {"ch": 128, "ch_mult": [1, 2, 4, 4], "num_res_blocks": 2}


def ldm_unet(sizes: dict[str, Any]) -> torch.nn.Module:
    return oracles.ldm("modules.diffusionmodules.openaimodel").UNetModel(
        image_size=32, in_channels=4, out_channels=4, num_res_blocks=2, use_spatial_transformer=True, transformer_depth=1,
        use_checkpoint=False, legacy=False, **sizes).eval()


class LdmAutoencoder(torch.nn.Module):
    """ldm's AutoencoderKL without its training, which needs pytorch-lightning."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        parts = oracles.ldm("modules.diffusionmodules.model")
        words = {"out_ch": 3, "in_channels": 3, "resolution": 32, "z_channels": 4, "attn_resolutions": [], "double_z": True, **sizes}
        self.encoder, self.decoder = parts.Encoder(**words), parts.Decoder(**words)
        self.quant_conv, self.post_quant_conv = torch.nn.Conv2d(8, 8, 1), torch.nn.Conv2d(4, 4, 1)


def part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((got - wanted).norm() / wanted.norm())


@pytest.fixture(scope="module", params=FAMILIES)
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, dict[str, torch.Tensor]]:
    """The family, diffusers' pipeline, and the tensors of our single file of it."""
    family, folder = request.param, tmp_path_factory.mktemp("ldm")
    pipe = make_pipeline(family, folder / "vocabulary")
    pipe.save_pretrained(folder / "model")
    done = run(["convert", "--model", str(folder / "model"), "--output", str(folder / "single.safetensors")])
    assert done.returncode == 0, done.stderr
    return family, pipe, load_file(folder / "single.safetensors")


@torch.no_grad()
def test_the_unet_of_ldm_reads_our_file(converted: tuple[str, Any, dict[str, torch.Tensor]]) -> None:
    family, pipe, tensors = converted
    theirs, weights = ldm_unet(TINY_UNETS[family]), part(tensors, "model.diffusion_model.")
    theirs.load_state_dict(weights, strict=True)
    inputs, _ = unet_inputs(dict(pipe.unet.config))
    wanted = pipe.unet(**inputs).sample

    def of_theirs() -> torch.Tensor:
        steps = inputs["timestep"].expand(len(inputs["sample"]))
        return theirs(inputs["sample"], timesteps=steps, context=inputs["encoder_hidden_states"])

    assert error(of_theirs(), wanted) <= TOLERANCE
    swapped = dict(weights)  # the mutant: two layers of one shape in each other's place
    names = ["input_blocks.1.1.transformer_blocks.0.attn1.to_q.weight", "input_blocks.1.1.transformer_blocks.0.attn1.to_k.weight"]
    swapped[names[0]], swapped[names[1]] = weights[names[1]], weights[names[0]]
    theirs.load_state_dict(swapped, strict=True)
    assert error(of_theirs(), wanted) > 10 * TOLERANCE


@torch.no_grad()
def test_the_autoencoder_of_ldm_reads_our_file(converted: tuple[str, Any, dict[str, torch.Tensor]]) -> None:
    _, pipe, tensors = converted
    theirs = LdmAutoencoder(TINY_VAE).eval()
    theirs.load_state_dict(part(tensors, "first_stage_model."), strict=True)
    generator = torch.Generator().manual_seed(0)
    image, latents = torch.randn(2, 3, 32, 32, generator=generator), torch.randn(2, 4, 8, 8, generator=generator)
    moments = theirs.quant_conv(theirs.encoder(image))
    assert error(moments, pipe.vae.encode(image).latent_dist.parameters) <= TOLERANCE
    decoded = theirs.decoder(theirs.post_quant_conv(latents))
    assert error(decoded, pipe.vae.decode(latents).sample) <= TOLERANCE
    assert error(theirs.decoder(latents), decoded) > 10 * TOLERANCE


@torch.no_grad()
def test_open_clip_reads_our_file(tmp_path: Path) -> None:
    """The second text encoder of SDXL, with its projection. Only the text half of OpenCLIP's model is in such files."""
    pipe = make_pipeline("sdxl", tmp_path / "vocabulary")
    pipe.save_pretrained(tmp_path / "model")
    done = run(["convert", "--model", str(tmp_path / "model"), "--output", str(tmp_path / "single.safetensors")])
    assert done.returncode == 0, done.stderr
    weights = part(load_file(tmp_path / "single.safetensors"), "conditioner.embedders.1.model.")
    config = pipe.text_encoder_2.config
    theirs = open_clip.model.CLIP(
        embed_dim=config.projection_dim, vision_cfg={"layers": 1, "width": 64, "head_width": 64, "patch_size": 16, "image_size": 32},
        text_cfg={"context_length": 77, "vocab_size": config.vocab_size, "width": config.hidden_size,
                  "heads": config.num_attention_heads, "layers": config.num_hidden_layers,
                  "mlp_ratio": config.intermediate_size / config.hidden_size}).eval()
    found = theirs.load_state_dict(weights, strict=False)
    assert not found.unexpected_keys
    assert all(name.startswith("visual.") or name == "logit_scale" for name in found.missing_keys), found.missing_keys
    ids = torch.tensor([[49406, 320, 1125, 49407] + [0] * 73])
    wanted = pipe.text_encoder_2(ids).text_embeds
    assert error(theirs.encode_text(ids), wanted) <= TOLERANCE
    theirs.load_state_dict({**weights, "text_projection": weights["text_projection"].T}, strict=False)
    assert error(theirs.encode_text(ids), wanted) > 10 * TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_published_sizes_have_the_names_of_ldm(family: str) -> None:
    """The layout that test_convert.py converts from is ldm's own, name by name and shape by shape."""
    assert PUBLISHED_UNETS[family]["cross_attention_dim"] == PUBLISHED[family]["context_dim"]
    tensors = ldm_tensors(published_model(family), family)
    with torch.device("meta"):
        unet, vae = ldm_unet(PUBLISHED[family]), LdmAutoencoder(PUBLISHED_VAE)
    for prefix, module in (("model.diffusion_model.", unet), ("first_stage_model.", vae)):
        shapes = {name: tensor.shape for name, tensor in module.state_dict().items()}
        assert {name: tensor.shape for name, tensor in part(tensors, prefix).items()} == shapes

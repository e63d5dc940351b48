"""UNet, VAE and text encoder against diffusers and transformers, run beside ours."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from model_families import (GRADIENT_TOLERANCE, OUTPUT_TOLERANCE, TEXT_CONFIGS, UNET_CONFIGS, VAE_CONFIGS, as_numpy,
                            in_double, make_text_encoder, make_unet, make_vae, relative_error, save, unet_inputs,
                            worst_gradient_error)
from safetensors.torch import load_file, save_file

import sdtune
from sdtune._native import testing

torch.set_num_threads(1)


def with_prefix(name: str) -> str:
    """transformers 5 names a plain CLIPTextModel's parameters without `text_model.`; ours have it."""
    return name if name.startswith("text_") else "text_model." + name


def text_ids() -> torch.Tensor:
    torch.manual_seed(5)
    ids = torch.randint(0, 97, (2, 77))
    ids[:, 0] = 98
    ids[0, 20:] = 99
    ids[1, 40:] = 99
    return ids


@pytest.mark.parametrize("family", UNET_CONFIGS)
def test_unet_output(family, tmp_path):
    reference = make_unet(family)
    ours = sdtune.UNet2DConditionModel.from_pretrained(save(reference, tmp_path))
    sizes = [(16, 16)] if family == "rare settings" else [(16, 16), (10, 14), (9, 13)]
    for size in sizes:
        inputs, _ = unet_inputs(UNET_CONFIGS[family], size)
        with torch.no_grad():
            expected = reference(**inputs).sample
        assert relative_error(ours(**as_numpy(inputs)), expected) <= OUTPUT_TOLERANCE


@pytest.mark.parametrize("change", [-1, 1, 32])
def test_text_embeds_of_another_width_are_named(change, tmp_path):
    ours = sdtune.UNet2DConditionModel.from_pretrained(save(make_unet("sdxl"), tmp_path))
    inputs = as_numpy(unet_inputs(UNET_CONFIGS["sdxl"])[0])
    assert np.isfinite(ours(**inputs)).all()
    width = inputs["added_cond_kwargs"]["text_embeds"].shape[1]
    inputs["added_cond_kwargs"]["text_embeds"] = np.zeros((2, width + change), np.float32)
    with pytest.raises(RuntimeError, match="text_embeds") as caught:
        ours(**inputs)
    assert str(width + change) in str(caught.value) and "internal error" not in str(caught.value).lower()


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("family", UNET_CONFIGS)
def test_unet_gradients(family, checkpointing, tmp_path):
    reference = make_unet(family)
    ours = sdtune.UNet2DConditionModel.from_pretrained(save(reference, tmp_path))
    inputs, target = unet_inputs(UNET_CONFIGS[family])
    torch.nn.functional.mse_loss(reference.double()(**in_double(inputs)).sample, target["target"].double()).backward()
    gradients = testing.unet_gradients(ours, **as_numpy(inputs), **as_numpy(target),
                                       gradient_checkpointing=checkpointing)
    assert worst_gradient_error(gradients, reference) <= GRADIENT_TOLERANCE


def test_recomputation_changes_no_gradient(tmp_path):
    ours = sdtune.UNet2DConditionModel.from_pretrained(save(make_unet("sd1"), tmp_path))
    inputs, target = unet_inputs(UNET_CONFIGS["sd1"])
    plain = testing.unet_gradients(ours, **as_numpy(inputs), **as_numpy(target))
    again = testing.unet_gradients(ours, **as_numpy(inputs), **as_numpy(target), gradient_checkpointing=True)
    norm = np.sqrt(sum(float((gradient ** 2).sum()) for gradient in plain.values()))
    assert all(np.abs(plain[name] - again[name]).max() <= 1e-5 * norm for name in plain)


@pytest.mark.parametrize("mutant", ["swapped key", "other eps", "other heads", "other sin and cos"])
def test_unet_mutants_fail(mutant, tmp_path):
    """The tolerance is tight enough to see a mistake."""
    reference = make_unet("sd1")
    save(reference, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    if mutant == "swapped key":
        weights = load_file(tmp_path / "diffusion_pytorch_model.safetensors")
        block = "down_blocks.0.attentions.0.transformer_blocks.0.attn2."
        weights[block + "to_k.weight"], weights[block + "to_v.weight"] = (weights[block + "to_v.weight"],
                                                                         weights[block + "to_k.weight"])
        save_file(weights, tmp_path / "diffusion_pytorch_model.safetensors", metadata={"format": "pt"})
    else:
        config.update({"other eps": {"norm_eps": 1e-3}, "other heads": {"attention_head_dim": 8},
                       "other sin and cos": {"flip_sin_to_cos": False}}[mutant])
        (tmp_path / "config.json").write_text(json.dumps(config))
    ours = sdtune.UNet2DConditionModel.from_pretrained(str(tmp_path))
    inputs, _ = unet_inputs(UNET_CONFIGS["sd1"])
    with torch.no_grad():
        expected = reference(**inputs).sample
    assert relative_error(ours(**as_numpy(inputs)), expected) > 3 * OUTPUT_TOLERANCE


@pytest.mark.parametrize("family", VAE_CONFIGS)
def test_vae(family, tmp_path):
    reference = make_vae(family)
    ours = sdtune.AutoencoderKL.from_pretrained(save(reference, tmp_path))
    torch.manual_seed(6)
    image, target = torch.rand(2, 3, 32, 24) * 2 - 1, torch.randn(2, 3, 32, 24)
    moments = reference.encode(image).latent_dist
    decoded = reference.decode(moments.mean).sample
    mean, logvar = ours.encode(image.numpy())
    assert relative_error(mean, moments.mean) <= OUTPUT_TOLERANCE
    assert relative_error(logvar, moments.logvar) <= OUTPUT_TOLERANCE
    assert relative_error(ours.decode(moments.mean.detach().numpy()), decoded) <= OUTPUT_TOLERANCE
    reference.double()
    decoded = reference.decode(reference.encode(image.double()).latent_dist.mean).sample
    torch.nn.functional.mse_loss(decoded, target.double()).backward()
    for parameter in reference.parameters():  # the logvar half of the last layer has none in the reference
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    assert worst_gradient_error(testing.vae_gradients(ours, image.numpy(), target.numpy()),
                                reference) <= GRADIENT_TOLERANCE


def text_outputs(reference, ids):
    """transformers' output, and the pooled state that its class has."""
    output = reference(ids, output_hidden_states=True)
    return output, output.text_embeds if hasattr(output, "text_embeds") else output.pooler_output


@pytest.mark.parametrize("family", TEXT_CONFIGS)
def test_text_encoder_output(family, tmp_path):
    reference = make_text_encoder(family)
    ours = sdtune.CLIPTextModel.from_pretrained(save(reference, tmp_path))
    expected, pooled = text_outputs(reference, text_ids())
    last, our_pooled, states = ours(text_ids().numpy())
    assert relative_error(last, expected.last_hidden_state) <= OUTPUT_TOLERANCE
    assert relative_error(our_pooled, pooled) <= OUTPUT_TOLERANCE
    assert len(states) == len(expected.hidden_states) == 4
    for state, theirs in zip(states, expected.hidden_states):
        assert relative_error(state, theirs) <= OUTPUT_TOLERANCE


def text_loss(reference, target=None):
    """(loss of all outputs against `target`, the target, random where none is given)"""
    output, pooled = text_outputs(reference, text_ids())
    joined = torch.cat([output.last_hidden_state.flatten(1), pooled], 1)
    target = torch.randn_like(joined) if target is None else target
    return torch.nn.functional.mse_loss(joined, target), target


@pytest.mark.parametrize("family", TEXT_CONFIGS)
def test_text_encoder_gradients(family, tmp_path):
    reference = make_text_encoder(family)
    ours = sdtune.CLIPTextModel.from_pretrained(save(reference, tmp_path))
    loss, target = text_loss(reference)
    loss.backward()
    in_float = {with_prefix(name): parameter.grad.numpy().copy() for name, parameter in reference.named_parameters()}
    reference.zero_grad()
    text_loss(reference.double(), target.double())[0].backward()
    for checkpointing in (False, True):
        gradients = testing.text_encoder_gradients(ours, text_ids().numpy(), target.numpy(), checkpointing)
        assert worst_gradient_error(gradients, reference, with_prefix) <= GRADIENT_TOLERANCE

    # The mutants: the rounding that float32 leaves in a key's bias, and one small tensor a little too large.
    assert worst_gradient_error(in_float, reference, with_prefix) > GRADIENT_TOLERANCE
    name = "text_model.final_layer_norm.bias"
    assert worst_gradient_error(gradients | {name: 1.0002 * gradients[name]}, reference,
                                with_prefix) > GRADIENT_TOLERANCE


def test_end_of_text_rules_differ(tmp_path):
    """A mutant: with the other rule the pooled state is another token's."""
    reference = make_text_encoder("sd1")
    save(reference, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["eos_token_id"] = 97
    (tmp_path / "config.json").write_text(json.dumps(config))
    ours = sdtune.CLIPTextModel.from_pretrained(str(tmp_path))
    pooled = reference(text_ids()).pooler_output
    assert relative_error(ours(text_ids().numpy())[1], pooled) > 100 * OUTPUT_TOLERANCE


@pytest.mark.parametrize("family", UNET_CONFIGS)
def test_config_survives(family):
    """What we write, diffusers reads as the same network."""
    reference = make_unet(family)
    ours = sdtune.UNet2DConditionModel.from_config(json.loads(reference.to_json_string()))
    again = UNet2DConditionModel.from_config(ours.config)
    shapes = {name: tuple(parameter.shape) for name, parameter in again.named_parameters()}
    assert shapes == {name: tuple(parameter.shape) for name, parameter in reference.named_parameters()}
    assert shapes == {name: parameter.shape for name, parameter in ours.named_parameters().items()}
    vae = sdtune.AutoencoderKL.from_config(json.loads(make_vae("sd").to_json_string()))
    assert dict(AutoencoderKL.from_config(vae.config).config)["scaling_factor"] == vae.config["scaling_factor"]


def test_one_depth_beside_a_list_survives():
    """Of a level of two layers too, which diffusers reads from a number and not from a list of one."""
    config = dict(UNET_CONFIGS["nested depths"], layers_per_block=2, transformer_layers_per_block=[1, [1, 2]],
                  reverse_transformer_layers_per_block=[[2, 1, 1], 1])
    reference = UNet2DConditionModel(**config)
    ours = sdtune.UNet2DConditionModel.from_config(json.loads(reference.to_json_string()))
    again = UNet2DConditionModel.from_config(ours.config)
    assert set(dict(again.named_parameters())) == set(dict(reference.named_parameters())) == set(ours.named_parameters())


def test_bfloat16_is_near(tmp_path):
    reference = make_unet("sd1")
    ours = sdtune.UNet2DConditionModel.from_pretrained(save(reference, tmp_path), dtype="bfloat16")
    inputs, _ = unet_inputs(UNET_CONFIGS["sd1"])
    with torch.no_grad():
        expected = reference(**inputs).sample
    error = relative_error(ours(**as_numpy(inputs)), expected)
    assert 10 * OUTPUT_TOLERANCE < error <= 2e-2, "the mutant computes in float32"

"""LoRA files of others on our models: the same images as with diffusers and PEFT, and every key accounted for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers.utils import convert_state_dict_to_diffusers
from ldm_layout import unet_name
from lora_files import (ATTENTION, WITH_CONVOLUTIONS, adapter_layers, add_adapters, load_pipeline, save_as_comfyui,
                        save_as_diffusers, save_as_kohya)
from model_families import as_numpy, in_double, unet_inputs
from peft import LoHaConfig, LoKrConfig, LoraConfig, get_peft_model_state_dict, inject_adapter_in_model
from program import ROOT, run
from safetensors.torch import load_file, save_file

import sdtune
from sdtune._native import testing

FAMILIES = ["sd1", "sd2", "sdxl"]
PROMPT = "a photo of sks person"
TOLERANCE = 1e-4
PASS_TOLERANCE = 1e-5
RANK, ALPHA = 3, 4.5  # odd on purpose


def latents_of_theirs(pipe: object) -> np.ndarray:
    generator = torch.Generator("cpu").manual_seed(3)
    return pipe(PROMPT, num_inference_steps=4, guidance_scale=5.0, generator=generator, output_type="latent").images.numpy()


def latents_of_ours(pipe: sdtune.StableDiffusionPipeline) -> np.ndarray:
    return pipe(PROMPT, num_inference_steps=4, guidance_scale=5.0, seed=3, output_type="latent").images


def error(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def ldm_names(pipe: object) -> dict[str, str]:
    """Path of a UNet layer -> its LDM path."""
    config = pipe.unet.config
    attends = ["CrossAttn" in block for block in config.up_block_types]
    return {layer: unet_name(f"{layer}.weight", config.layers_per_block, attends).removesuffix(".weight")
            for layer in adapter_layers(pipe.unet)}


@pytest.mark.parametrize("layers", [ATTENTION, WITH_CONVOLUTIONS], ids=["attention", "convolutions"])
@pytest.mark.parametrize("style", ["diffusers", "kohya", "comfyui"])
@pytest.mark.parametrize("family", FAMILIES)
def test_files_of_others_give_the_same_images(family: str, style: str, layers: list[str], tiny_folder: Callable[[str], Path],
                                       tmp_path: Path) -> None:
    folder = tiny_folder(family)
    theirs = load_pipeline(folder)
    ours = sdtune.StableDiffusionPipeline.from_pretrained(folder)
    plain = latents_of_ours(ours)
    add_adapters(theirs, RANK, ALPHA, layers)
    if style == "diffusers":
        path = save_as_diffusers(theirs, tmp_path, RANK, ALPHA)
    elif style == "comfyui":
        path = save_as_comfyui(theirs, tmp_path / "comfyui.safetensors", ALPHA / RANK, ldm_names(theirs))
    else:
        path = save_as_kohya(theirs, tmp_path / "kohya.safetensors", ALPHA, ldm_names(theirs) if family == "sdxl" else {})
    ours.load_lora_weights(path)
    wanted = latents_of_theirs(theirs)
    assert error(latents_of_ours(ours), wanted) <= TOLERANCE
    assert error(plain, wanted) > 100 * TOLERANCE  # without it the image is another one
    ours.unload_lora_weights()
    assert np.array_equal(latents_of_ours(ours), plain)


@pytest.mark.parametrize("layers", [ATTENTION, WITH_CONVOLUTIONS], ids=["attention", "convolutions"])
@pytest.mark.parametrize("family", FAMILIES)
def test_output_and_gradients_equal_peft(family: str, layers: list[str], tiny_folder: Callable[[str], Path],
                                         tmp_path: Path) -> None:
    """One pass of the UNet on the same weights; PEFT in double precision, so that only our rounding is seen."""
    folder = tiny_folder(family)
    theirs = load_pipeline(folder)
    add_adapters(theirs, RANK, ALPHA, layers)
    ours = sdtune.StableDiffusionPipeline.from_pretrained(folder)
    ours.load_lora_weights(save_as_diffusers(theirs, tmp_path, RANK, ALPHA))
    inputs, target = unet_inputs(dict(theirs.unet.config))
    output, gradients = testing.lora_pass(ours, **as_numpy(inputs), **as_numpy(target))
    wanted = theirs.unet.double()(**in_double(inputs)).sample
    torch.nn.functional.mse_loss(wanted, target["target"].double()).backward()
    assert error(output, wanted.detach().numpy()) <= PASS_TOLERANCE
    matrices = {name: parameter.grad.numpy() for name, parameter in theirs.unet.named_parameters() if "lora_" in name}
    total = np.sqrt(sum(float((gradient ** 2).sum()) for gradient in matrices.values()))
    assert len(matrices) == 2 * len(gradients) > 0
    for path, pair in gradients.items():
        for which, got in zip(("lora_A", "lora_B"), pair, strict=True):
            expected = matrices[f"{path.removeprefix('unet.')}.{which}.default.weight"]
            assert np.linalg.norm(got - expected) <= PASS_TOLERANCE * max(np.linalg.norm(expected), 1e-4 * total), path


@pytest.mark.parametrize("style", ["pipeline", "UNet alone", "PEFT's folder"])
@pytest.mark.parametrize("stabilised", [False, True], ids=["by rank", "by its root"])
def test_what_the_header_says_of_the_scale(stabilised: bool, style: str, tiny_sd1: Path, tmp_path: Path) -> None:
    """PEFT's use_rslora, and the header of unet.save_lora_adapter, whose keys name no component."""
    theirs = load_pipeline(tiny_sd1)
    torch.manual_seed(0)
    one_layer = "^mid_block.attentions.0.transformer_blocks.0.attn1.to_q"
    config = LoraConfig(r=4, lora_alpha=6, target_modules=ATTENTION, use_rslora=stabilised, alpha_pattern={one_layer: 3})
    theirs.unet.add_adapter(config)
    for name, parameter in theirs.unet.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.12)
    if style == "pipeline":
        layers = convert_state_dict_to_diffusers(get_peft_model_state_dict(theirs.unet))
        type(theirs).save_lora_weights(tmp_path, unet_lora_layers=layers, unet_lora_adapter_metadata=theirs.unet.peft_config["default"].to_dict())
    elif style == "UNet alone":
        theirs.unet.save_lora_adapter(tmp_path)
    else:  # as get_peft_model(unet, config).save_pretrained(folder) writes it
        tensors = {f"base_model.model.{name}": tensor.contiguous() for name, tensor in get_peft_model_state_dict(theirs.unet).items()}
        save_file(tensors, tmp_path / "adapter_model.safetensors", {"format": "pt"})
        config.save_pretrained(tmp_path)
    file = tmp_path / ("adapter_model.safetensors" if style == "PEFT's folder" else "pytorch_lora_weights.safetensors")
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    ours.load_lora_weights(file)
    wanted = latents_of_theirs(theirs)
    assert error(latents_of_ours(ours), wanted) <= TOLERANCE
    ours.load_lora_weights(file, scale=2 / 3)
    assert error(latents_of_ours(ours), wanted) > 10 * TOLERANCE  # as if alpha were the rank


def test_a_run_s_folder_may_end_with_a_slash(tiny_sd1: Path, tmp_path: Path) -> None:
    """As a shell's completion writes it: the file of other programs has the run's name, and the run is a finished one."""
    done = run(["train", "--base", str(tiny_sd1), "--images", str(ROOT / "examples" / "me"), "--method", "lora", "--max-train-steps", "1", "--device", "cpu",
                "--resolution", "32", "--with-prior-preservation", "false", "--lora-alpha", "11.2", "--output", f"{tmp_path}/tom/"])  # no float32 number
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tom" / "model" / "tom.safetensors").exists()
    said = json.loads(run(["inspect", str(tmp_path / "tom"), "--json"]).stdout)
    assert said["finished"] and said["model"]["kind"] == "LoRA of a run"


def test_scale_and_several_files_add_up(tiny_sd1: Path, tmp_path: Path) -> None:
    """Twice half of it is all of it; the same file again replaces itself."""
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, ATTENTION)
    path = save_as_diffusers(theirs, tmp_path / "a", RANK, ALPHA)
    copy = tmp_path / "b.safetensors"
    copy.write_bytes(path.read_bytes())
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    ours.load_lora_weights(path, scale=7.0)
    ours.load_lora_weights(path, scale=0.5)
    half = latents_of_ours(ours)
    ours.load_lora_weights(copy, scale=0.5)
    wanted = latents_of_theirs(theirs)
    assert error(latents_of_ours(ours), wanted) <= TOLERANCE
    assert error(half, wanted) > 100 * TOLERANCE


OLD_NAMES = {
    "PEFT alone": lambda name: "base_model.model." + name,
    "an adapter's name": lambda name: name.replace(".lora_A.weight", ".lora_A.default.weight")
                                          .replace(".lora_B.weight", ".lora_B.default.weight"),
    "compiled": lambda name: name.replace("unet.", "unet._orig_mod."),
    "diffusers 0.2x": lambda name: name.replace(".lora_A.", ".lora.down.").replace(".lora_B.", ".lora.up."),
    "attention processors": lambda name: name.replace(".to_out.0.lora_A.", ".processor.to_out_lora.down.")
                                             .replace(".to_out.0.lora_B.", ".processor.to_out_lora.up.")
                                             .replace(".to_", ".processor.to_").replace(".processor.processor.", ".processor.")
                                             .replace(".lora_A.", "_lora.down.").replace(".lora_B.", "_lora.up."),
    "the UNet alone": lambda name: name.removeprefix("unet."),
}


@pytest.mark.parametrize("naming", OLD_NAMES)
def test_older_names_mean_the_same(naming: str, tiny_sd1: Path, tmp_path: Path) -> None:
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, RANK, ATTENTION)  # alpha = rank, which files without alpha mean
    tensors = {name: tensor for name, tensor in load_file(save_as_diffusers(theirs, tmp_path, RANK, RANK)).items()
               if name.startswith("unet.")}
    renamed = {OLD_NAMES[naming](name.replace(".lora.down.", ".lora_A.").replace(".lora.up.", ".lora_B.")): tensor
               for name, tensor in tensors.items()}
    results = []
    for index, state in enumerate((tensors, renamed)):
        path = tmp_path / f"{index}.safetensors"
        save_file(state, path)
        ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
        ours.load_lora_weights(path)
        results.append(latents_of_ours(ours))
    assert np.array_equal(*results)


def test_text_encoders_of_old_files(tiny_sd1: Path, tmp_path: Path) -> None:
    """diffusers' DreamBooth script of 2023 with --train_text_encoder: self_attn.to_q_lora.down."""
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, RANK, ATTENTION)
    tensors = {name: tensor for name, tensor in load_file(save_as_diffusers(theirs, tmp_path, RANK, RANK)).items()
               if name.startswith("text_encoder.") and "self_attn" in name}
    old = {}
    for name, tensor in tensors.items():
        for own, before in (("q_proj", "to_q_lora"), ("k_proj", "to_k_lora"), ("v_proj", "to_v_lora"), ("out_proj", "to_out_lora")):
            name = name.replace(f".{own}.", f".{before}.")
        for own, before in ((".lora_linear_layer.", "."), (".lora_A.", ".down."), (".lora_B.", ".up."), (".lora.", ".")):
            name = name.replace(own, before)
        old[name] = tensor
    assert old and all("_lora.down.weight" in name or "_lora.up.weight" in name for name in old), sorted(old)[:3]
    results = []
    for index, state in enumerate((tensors, old)):
        save_file(state, tmp_path / f"{index}.safetensors")
        ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
        ours.load_lora_weights(tmp_path / f"{index}.safetensors")
        results.append(latents_of_ours(ours))
    assert np.array_equal(*results)


def test_what_does_not_fit_is_counted_and_named(tiny_sd1: Path, tiny_sd2: Path, tmp_path: Path) -> None:
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, ATTENTION)
    whole = load_file(save_as_diffusers(theirs, tmp_path, RANK, ALPHA))
    first = next(iter(whole))
    layer = first.rsplit(".lora", 1)[0]
    cases = {
        "holds no low-rank layer": {},
        "is no matrix with numbers": {**whole, first: torch.zeros(RANK)},
        "needed: two dimensions or more": {**whole, first: torch.tensor(1.0)},
        "rank 1 or more": {**whole, first: torch.zeros(0, 32)},
        "alpha is no finite number": {**whole, f"{layer}.alpha": torch.tensor(float("nan"))},
        "has biases beside its matrices": {**whole, f"{layer}.lora_B.bias": torch.zeros(32)},
        "adapter.bias": {**whole, f"{layer}.lora_B.adapter.bias": torch.zeros(32)},
        "keys are no layer of this model, the first is unet.nowhere.lora_A.weight":
            {**whole, "unet.nowhere.lora_A.weight": torch.zeros(2, 2)},
        "has only one of its two matrices": {name: tensor for name, tensor in whole.items() if name != first},
        "has the wrong shape": {**whole, first: torch.zeros(RANK, 5)},
        "is a DoRA": {**whole, "lora_unet_x.dora_scale": torch.zeros(1)},
        "is a OFT": {"lora_unet_x.oft_blocks": torch.zeros(1)},
        "is a OFT.*oft_R": {"base_model.model.conv_in.oft_R": torch.zeros(1)},  # PEFT's
        "is a BOFT": {"base_model.model.conv_in.boft_R": torch.zeros(1)},
        "is a IA3": {"base_model.model.conv_in.ia3_l": torch.zeros(1)},
        "is a full LyCORIS": {**whole, "lora_unet_conv_in.diff": torch.zeros(1)},
        "is a LoRA with embeddings": {**whole, "bundle_emb.me.string_to_param.*": torch.zeros(1, 32)},  # OneTrainer's
        "is a LyCORIS with norms": {**whole, "lora_unet_conv_norm_out.w_norm": torch.zeros(1)},
    }
    plain = latents_of_ours(ours)
    for said, state in cases.items():
        path = tmp_path / "bad.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
        with pytest.raises(sdtune.WeightError, match=said):
            ours.load_lora_weights(path)
        assert np.array_equal(latents_of_ours(ours), plain)  # nothing half-attached


def test_a_part_of_the_base_is_refused(tiny_sd1: Path, tmp_path: Path) -> None:
    """PiSSA and the like: PEFT takes the part out of the base when it reads the file; beside the whole base it would count twice."""
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, ATTENTION)
    tensors = load_file(save_as_diffusers(theirs, tmp_path, RANK, ALPHA))
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    for name, key in (("header.safetensors", "unet.init_lora_weights"), ("adapter_model.safetensors", "init_lora_weights")):
        for way in ("gaussian", "pissa_niter_4"):
            said = json.dumps({key: way})
            (tmp_path / "adapter_config.json").write_text(said)
            save_file(tensors, tmp_path / name, {"lora_adapter_metadata": said} if name.startswith("header") else None)
            if way == "gaussian":
                ours.load_lora_weights(tmp_path / name)
                continue
            with pytest.raises(sdtune.WeightError, match=rf"would count twice \({key} is pissa_niter_4\)"):
                ours.load_lora_weights(tmp_path / name)


LYCORIS = {
    "LoHa": (LoHaConfig(r=3, alpha=5, target_modules=WITH_CONVOLUTIONS), "hada_"),
    "LoHa, Tucker": (LoHaConfig(r=3, alpha=5, target_modules=WITH_CONVOLUTIONS, use_effective_conv2d=True), "hada_"),
    "LoKr": (LoKrConfig(r=2, alpha=5, target_modules=WITH_CONVOLUTIONS), "lokr_"),
    "LoKr, Tucker": (LoKrConfig(r=2, alpha=5, target_modules=WITH_CONVOLUTIONS, use_effective_conv2d=True), "lokr_"),
    "LoKr, both decomposed": (LoKrConfig(r=2, alpha=5, target_modules=ATTENTION, decompose_both=True), "lokr_"),
}


@pytest.mark.parametrize("method", LYCORIS)
def test_lycoris_layers_generate_as_with_peft(method: str, tiny_sd1: Path, tmp_path: Path) -> None:
    config, prefix = LYCORIS[method]
    theirs = load_pipeline(tiny_sd1)
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    plain = latents_of_ours(ours)
    torch.manual_seed(0)
    inject_adapter_in_model(config, theirs.unet)
    tensors = {}
    for name, parameter in theirs.unet.named_parameters():
        if prefix not in name:
            continue
        torch.nn.init.normal_(parameter, std=0.2)
        layer, factor = name.removesuffix(".default").rsplit(".", 1)
        spelled = "lora_unet_" + layer.replace(".", "_")
        tensors[f"{spelled}.{factor}"] = parameter.detach().clone()
        tensors[f"{spelled}.alpha"] = torch.tensor(5.0)
    path = tmp_path / "lycoris.safetensors"
    save_file(tensors, path)
    ours.load_lora_weights(path)
    wanted = latents_of_theirs(theirs)
    assert error(latents_of_ours(ours), wanted) <= TOLERANCE
    assert error(plain, wanted) > 100 * TOLERANCE


PEFT_FOLDERS = {
    "LoKr, whole factors": (LoKrConfig(r=16, alpha=5, target_modules=WITH_CONVOLUTIONS, alpha_pattern={"to_q": 40}, rank_pattern={"to_v": 2}), "lokr_"),
    "LoHa": (LoHaConfig(r=3, alpha=5, target_modules=WITH_CONVOLUTIONS, alpha_pattern={"to_q": 2}, rank_pattern={"to_v": 2}), "hada_"),
}


@pytest.mark.parametrize("method", PEFT_FOLDERS)
def test_the_scale_of_lycoris_layers_in_peft_s_own_folder(method: str, tiny_sd1: Path, tmp_path: Path) -> None:
    """alpha / r of adapter_config.json and its patterns, also where both factors are whole and no tensor says r."""
    config, prefix = PEFT_FOLDERS[method]
    theirs = load_pipeline(tiny_sd1)
    torch.manual_seed(0)
    inject_adapter_in_model(config, theirs.unet)
    tensors = {}
    for name, parameter in theirs.unet.named_parameters():
        if prefix in name:
            torch.nn.init.normal_(parameter, std=0.2)
            tensors[f"base_model.model.{name.removesuffix('.default')}"] = parameter.detach().clone()
    assert any(name.endswith(("to_k.lokr_w2", "to_k.hada_w2_a")) for name in tensors), sorted(tensors)[:5]
    save_file(tensors, tmp_path / "adapter_model.safetensors", {"format": "pt"})
    config.save_pretrained(tmp_path)
    save_file(tensors, tmp_path / "alone.safetensors", {"format": "pt"})
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    ours.load_lora_weights(tmp_path / "adapter_model.safetensors")
    wanted = latents_of_theirs(theirs)
    assert error(latents_of_ours(ours), wanted) <= TOLERANCE
    ours.unload_lora_weights()
    ours.load_lora_weights(tmp_path / "alone.safetensors")  # the mutant: each layer in full
    assert error(latents_of_ours(ours), wanted) > 10 * TOLERANCE


def test_tucker_convolutions_are_three_in_a_row(tiny_sd1: Path, tmp_path: Path) -> None:
    """LoCon with lora_mid: down 1 x 1, mid with the kernel, up 1 x 1, as plain convolutions."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    channels, out = pipe.unet.config["in_channels"], pipe.unet.config["block_out_channels"][0]
    torch.manual_seed(0)
    down, mid, up = torch.randn(3, channels, 1, 1), torch.randn(3, 3, 3, 3), torch.randn(out, 3, 1, 1)
    image = torch.randn(1, channels, 8, 8)
    wanted = torch.nn.functional.conv2d(torch.nn.functional.conv2d(
        torch.nn.functional.conv2d(image, down), mid, padding=1), up) * 2.0 / 3
    delta = torch.einsum("pi,ijkl,jr->prkl", up[:, :, 0, 0], mid, down[:, :, 0, 0]) * 2.0 / 3
    torch.testing.assert_close(torch.nn.functional.conv2d(image, delta, padding=1), wanted, rtol=1e-4, atol=1e-4)
    tucker, plain = tmp_path / "tucker.safetensors", tmp_path / "plain.safetensors"
    save_file({"lora_unet_conv_in.lora_down.weight": down, "lora_unet_conv_in.lora_mid.weight": mid,
               "lora_unet_conv_in.lora_up.weight": up, "lora_unet_conv_in.alpha": torch.tensor(2.0)}, tucker)
    full = delta.flatten(1)  # as a LoRA of full rank: up = identity
    save_file({"lora_unet_conv_in.lora_down.weight": full.reshape(out, channels, 3, 3).contiguous(),
               "lora_unet_conv_in.lora_up.weight": torch.eye(out).reshape(out, out, 1, 1)}, plain)
    pictures = []
    for path in (tucker, plain):
        pipe.unload_lora_weights()
        pipe.load_lora_weights(path)
        pictures.append(latents_of_ours(pipe))
    assert error(pictures[0], pictures[1]) <= TOLERANCE


def test_fusing_gives_the_same_and_is_undone_again(tiny_sd1: Path, tmp_path: Path) -> None:
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, WITH_CONVOLUTIONS)
    path = save_as_diffusers(theirs, tmp_path, RANK, ALPHA)
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1)
    plain = latents_of_ours(pipe)
    pipe.load_lora_weights(path)
    with_lora = latents_of_ours(pipe)
    pipe.fuse_lora()
    assert error(latents_of_ours(pipe), with_lora) <= TOLERANCE
    pipe.save_pretrained(tmp_path / "fused")
    saved = sdtune.StableDiffusionPipeline.from_pretrained(tmp_path / "fused")
    assert error(latents_of_ours(saved), with_lora) <= TOLERANCE
    pipe.unfuse_lora()
    assert error(latents_of_ours(pipe), with_lora) <= TOLERANCE
    pipe.fuse_lora()
    pipe.unload_lora_weights()
    assert error(latents_of_ours(pipe), with_lora) <= TOLERANCE, "as in diffusers: what was fused stays"
    theirs.fuse_lora()
    theirs.unload_lora_weights()
    assert error(latents_of_ours(pipe), latents_of_theirs(theirs)) <= TOLERANCE
    assert error(plain, with_lora) > 100 * TOLERANCE

"""sdtune convert --lora: other names, the same numbers, and what the header says of the training."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from lora_files import ATTENTION, WITH_CONVOLUTIONS, add_adapters, load_pipeline, save_as_diffusers
from program import run
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_lora import ALPHA, FAMILIES, RANK, TOLERANCE, error, latents_of_ours, latents_of_theirs

import sdtune


def metadata_of(path: Path) -> dict[str, str]:
    with safe_open(path, "pt") as file:
        return file.metadata()


def convert(folder: Path, source: Path, naming: str, target: Path) -> Path:
    done = run(["convert", "--model", str(folder), "--lora", str(source), "--lora-naming", naming, "--output", str(target)])
    assert done.returncode == 0 and done.stdout.strip() == str(target), done.stderr
    return target


@pytest.mark.parametrize("family", FAMILIES)
def test_converting_to_other_names_and_back_keeps_every_number(family: str, tiny_folder: Callable[[str], Path],
                                                              tmp_path: Path) -> None:
    folder = tiny_folder(family)
    theirs = load_pipeline(folder)
    add_adapters(theirs, RANK, ALPHA, WITH_CONVOLUTIONS)
    original = save_as_diffusers(theirs, tmp_path / "original", RANK, ALPHA)
    kohya, back = tmp_path / "kohya.safetensors", tmp_path / "back.safetensors"
    for source, naming, target in ((original, "kohya", kohya), (kohya, "diffusers", back)):
        convert(folder, source, naming, target)
    before, after = load_file(original), load_file(back)
    for name, tensor in before.items():
        # transformers 5 leaves out text_model, which every other program expects; diffusers writes older names of its own.
        spelled = re.sub(r"^(text_encoder(_2)?)\.encoder", r"\1.text_model.encoder", name)
        spelled = re.sub(r"\.lora(_linear_layer)?\.down\.", ".lora_A.", spelled)
        spelled = re.sub(r"\.lora(_linear_layer)?\.up\.", ".lora_B.", spelled)
        assert torch.equal(after[spelled], tensor), name
    assert all(name.startswith("lora_") for name in load_file(kohya))
    # A1111-style names give the image of diffusers with the original.
    ours = sdtune.StableDiffusionPipeline.from_pretrained(folder)
    ours.load_lora_weights(kohya)
    assert error(latents_of_ours(ours), latents_of_theirs(theirs)) <= TOLERANCE


def test_converting_a_lora_refuses_what_it_cannot_do(tiny_sd1: Path, tmp_path: Path) -> None:
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, ATTENTION)
    source = save_as_diffusers(theirs, tmp_path / "original", RANK, ALPHA)
    existing = tmp_path / "existing.safetensors"
    existing.write_bytes(b"mine")
    output = tmp_path / "out.safetensors"
    save_file({"some.other.network": torch.zeros(2, 2)}, tmp_path / "foreign.safetensors")
    whole = load_file(source)
    save_file({**whole, next(iter(whole)): torch.zeros(RANK, 5)}, tmp_path / "misfit.safetensors")
    cases = [([str(tiny_sd1), str(tmp_path / "misfit.safetensors"), str(output)], "has the wrong shape"),
             ([str(tiny_sd1), str(tmp_path / "foreign.safetensors"), str(output)], "some.other.network"),
             ([str(tiny_sd1), str(source), str(tmp_path / "out")], ".safetensors"),
             ([str(tiny_sd1), str(source), str(existing)], "--overwrite"), ([str(tiny_sd1), str(tmp_path / "no"), str(output)], "no")]
    for (model, lora, target), said in cases:
        done = run(["convert", "--model", model, "--lora", lora, "--output", target])
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert existing.read_bytes() == b"mine" and not output.exists()
    assert run(["convert", "--model", str(tiny_sd1), "--lora", str(source), "--output", str(output), "--dry-run"]).returncode == 0
    assert not output.exists()


def test_what_the_header_says_of_the_training_stays(tiny_sd1: Path, tmp_path: Path) -> None:
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, ATTENTION)
    original = convert(tiny_sd1, save_as_diffusers(theirs, tmp_path / "theirs", RANK, ALPHA), "kohya", tmp_path / "plain.safetensors")
    of_training = {"ss_tag_frequency": json.dumps({"10_sks person": {"smiling": 3}}), "modelspec.trigger_phrase": "sks person",
                   "ss_sd_model_name": "v1-5.safetensors", "somebody.elses": "words"}
    of_bytes = {"sshs_model_hash": "0" * 64, "sshs_legacy_hash": "0" * 8, "modelspec.hash_sha256": "0x0"}
    source = tmp_path / "source.safetensors"
    save_file(load_file(original), source, {**metadata_of(original), **of_training, **of_bytes})
    said = {**metadata_of(original), **of_training}
    del said["sshs_model_hash"], said["sshs_legacy_hash"]

    diffusers = convert(tiny_sd1, source, "diffusers", tmp_path / "diffusers.safetensors")
    found = metadata_of(diffusers)
    assert json.loads(found.pop("lora_adapter_metadata")) and found == said, "hashes of other bytes are no longer said"
    kohya = convert(tiny_sd1, diffusers, "kohya", tmp_path / "kohya.safetensors")
    found = metadata_of(kohya)
    content = kohya.read_bytes()
    tensors = content[8 + int.from_bytes(content[:8], "little"):]
    assert found.pop("sshs_model_hash") == hashlib.sha256(tensors).hexdigest()
    assert found.pop("sshs_legacy_hash") and found == said, "PEFT's configuration is of the other names"
    assert json.loads(found["ss_network_dim"]) == RANK and float(found["ss_network_alpha"]) == ALPHA


def test_arguments_of_another_network_do_not_stay(tiny_sd1: Path, tmp_path: Path) -> None:
    theirs = load_pipeline(tiny_sd1)
    add_adapters(theirs, RANK, ALPHA, ATTENTION)
    original = convert(tiny_sd1, save_as_diffusers(theirs, tmp_path / "theirs", RANK, ALPHA), "kohya", tmp_path / "plain.safetensors")
    source = tmp_path / "source.safetensors"
    for module, is_kept in (("networks.lora", True), ("lycoris.kohya", False)):
        save_file(load_file(original), source, {"ss_network_module": module, "ss_network_args": json.dumps({"algo": "locon"}), "ss_seed": "1"})
        found = metadata_of(convert(tiny_sd1, source, "kohya", tmp_path / f"{module}.safetensors"))
        assert found["ss_network_module"] == "networks.lora" and found["ss_seed"] == "1"
        assert ("ss_network_args" in found) == is_kept

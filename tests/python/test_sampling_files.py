"""Another VAE and textual inversions: files of A1111 and diffusers, beside diffusers with the same files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import sdtune
import torch
from PIL import Image
from safetensors.torch import save_file

import a1111_prompts as a1111
from ldm_layout import ldm_vae
from program import run
from tiny_models import make_vae

TOLERANCE = 1e-5
WIDTHS = {"sd1": (32, 0), "sd2": (48, 0), "sdxl": (32, 40)}


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def load_pair(folder: Path) -> tuple[Any, Any]:
    theirs = diffusers.DiffusionPipeline.from_pretrained(folder)
    theirs.set_progress_bar_config(disable=True)
    return theirs, sdtune.StableDiffusionPipeline.from_pretrained(folder, device="cpu")


def distance(got: np.ndarray, expected: Any) -> float:
    expected = np.asarray(expected)
    assert got.shape == expected.shape and np.isfinite(expected).all()
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def vectors(count: int, width: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)) * 0.1


def write_embedding(path: Path, family: str, count: int, key: str = "emb_params") -> dict[str, torch.Tensor]:
    width, width_2 = WIDTHS[family]
    tensors = {key: vectors(count, width)}
    if width_2:
        tensors = {"clip_l": vectors(count, width), "clip_g": vectors(count, width_2, 1)}
    save_file(tensors, path)
    return tensors


def load_into_diffusers(pipe: Any, tensors: dict[str, torch.Tensor], token: str) -> None:
    if "clip_l" in tensors:
        pipe.load_textual_inversion(tensors["clip_l"], token=token, tokenizer=pipe.tokenizer,
                                    text_encoder=pipe.text_encoder)
        pipe.load_textual_inversion(tensors["clip_g"], token=token, tokenizer=pipe.tokenizer_2,
                                    text_encoder=pipe.text_encoder_2)
    else:
        pipe.load_textual_inversion(next(iter(tensors.values())), token=token)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_embedding_equals_diffusers(tiny_folder: Callable[[str], Path], tmp_path: Path, family: str,
                                    count: int) -> None:
    theirs, ours = load_pair(tiny_folder(family))
    tensors = write_embedding(tmp_path / "toy.safetensors", family, count)
    prompt, negative = "a photo of <cat-toy> on a beach, <cat-toy>", "blurry <cat-toy>"
    without = ours.encode_prompt(prompt, negative_prompt=negative)
    load_into_diffusers(theirs, tensors, "<cat-toy>")
    ours.load_textual_inversion(tmp_path / "toy.safetensors", token="<cat-toy>")
    expected = theirs.encode_prompt(prompt=prompt, device="cpu", num_images_per_prompt=1,
                                    do_classifier_free_guidance=True, negative_prompt=negative)
    got = ours.encode_prompt(prompt, negative_prompt=negative)
    assert all(distance(a, b) <= TOLERANCE for a, b in zip(got, expected) if b is not None)
    assert distance(without[0], expected[0]) > 100 * TOLERANCE
    latents = theirs(prompt, num_inference_steps=3, generator=torch.Generator().manual_seed(0),
                     output_type="latent").images
    mine = ours(prompt, num_inference_steps=3, guidance_scale=7.5 if family != "sdxl" else 5.0, output_type="latent")
    assert distance(mine.images, latents) <= 1e-4
    ours.unload_textual_inversion()
    assert all(np.array_equal(a, b) for a, b in zip(ours.encode_prompt(prompt, negative_prompt=negative), without))


def test_token_comes_from_the_file(tiny_sd1: Path, tmp_path: Path) -> None:
    """A1111's is the file's name, diffusers' its key; both in any case, as a word of its own."""
    _, ours = load_pair(tiny_sd1)
    write_embedding(tmp_path / "easyneg.safetensors", "sd1", 2)
    write_embedding(tmp_path / "learned_embeds.safetensors", "sd1", 2, key="<toy>")
    plain = {text: ours.encode_prompt(text)[0] for text in ("a easyneg", "a EasyNeg", "a easynegs", "a<toy>b")}
    ours.load_textual_inversion(tmp_path / "easyneg.safetensors")
    ours.load_textual_inversion(tmp_path / "learned_embeds.safetensors")
    now = {text: ours.encode_prompt(text)[0] for text in plain}
    assert np.array_equal(now["a easyneg"], now["a EasyNeg"])
    assert {text for text in plain if not np.array_equal(plain[text], now[text])} == {"a easyneg", "a EasyNeg", "a<toy>b"}
    with pytest.raises(sdtune.ConfigError, match="easyneg"):
        ours.load_textual_inversion(tmp_path / "easyneg.safetensors")


def test_an_embedding_of_a1111_s_pickle_has_the_file_s_name(tiny_sd1: Path, tmp_path: Path) -> None:
    """string_to_param of such a .pt holds the vectors under "*"."""
    torch.save({"string_to_token": {"*": 265}, "string_to_param": {"*": vectors(2, 32)}, "name": "old", "step": 3}, tmp_path / "toy.pt")
    done = run(["convert", "--pickle", str(tmp_path / "toy.pt"), "--pickle-key", "string_to_param", "--output",
                str(tmp_path / "toy.safetensors")])
    assert done.returncode == 0, done.stderr
    _, ours = load_pair(tiny_sd1)
    plain = {text: ours.encode_prompt(text)[0] for text in ("a toy", "a *")}
    ours.load_textual_inversion(tmp_path / "toy.safetensors")
    assert {text for text in plain if not np.array_equal(plain[text], ours.encode_prompt(text)[0])} == {"a toy"}


def test_weights_and_chunks_keep_an_embedding_whole(tiny_sd1: Path, tmp_path: Path) -> None:
    """Its vectors take the weight of their brackets, and go into the next chunk together."""
    theirs, ours = load_pair(tiny_sd1)
    tensors = write_embedding(tmp_path / "toy.safetensors", "sd1", 3)
    load_into_diffusers(theirs, tensors, "zzz")
    ours.load_textual_inversion(tmp_path / "toy.safetensors", token="zzz")
    expected = a1111.encode(theirs, "a (zzz zzz_1 zzz_2:1.4) cat")[0]
    assert distance(ours.encode_prompt("a (zzz:1.4) cat", prompt_syntax="weighted")[0], expected) <= TOLERANCE
    words = "cat " * 73
    expected = a1111.encode(theirs, words + "BREAK zzz zzz_1 zzz_2 dog")[0]
    got = ours.encode_prompt(words + "zzz dog", prompt_syntax="weighted")[0]
    assert distance(got, expected) <= TOLERANCE


@pytest.mark.parametrize("case, named", [
    ("pickle", "safetensors"), ("width", "allowed: [vectors, 32]"), ("two tensors", "emb_params"),
    ("many", "1..75"), ("no name", "gives its embedding no name"), ("absent", "absent")])
def test_wrong_embeddings_are_refused(tiny_sd1: Path, tmp_path: Path, case: str, named: str) -> None:
    _, ours = load_pair(tiny_sd1)
    path = tmp_path / f"{case}.safetensors"
    if case == "pickle":
        path = tmp_path / "toy.pt"
        torch.save({"string_to_param": {"*": vectors(1, 32)}}, path)
    elif case != "absent":
        save_file({"width": {"emb_params": vectors(1, 768)}, "no name": {"": vectors(1, 32)}, "many": {"emb_params": vectors(76, 32)},
                   "two tensors": {"a": vectors(1, 32), "b": vectors(1, 32)}}[case], path)
    with pytest.raises(sdtune.Error) as caught:
        ours.load_textual_inversion(path)
    assert path.name in str(caught.value) and named in str(caught.value)


@pytest.fixture(scope="module")
def other_vae() -> Any:
    torch.manual_seed(9)
    return make_vae("sd1")


def vae_files(vae: Any, folder: Path) -> dict[str, Path]:
    """One VAE in every layout: its folder, a model around it, diffusers' names, LDM's names with and without prefix."""
    vae.save_pretrained(folder / "alone")
    vae.save_pretrained(folder / "model" / "vae")
    files = {"folder": folder / "alone", "model": folder / "model"}
    plain = ldm_vae(vae)
    layouts = {"diffusers": vae.state_dict(), "ldm": plain | {"loss.logvar": torch.zeros(())},
               "checkpoint": {"first_stage_model." + name: tensor for name, tensor in plain.items()}}
    for name, tensors in layouts.items():
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, folder / f"{name}.safetensors")
        files[name] = folder / f"{name}.safetensors"
    return files


def test_every_layout_of_a_vae(tiny_sd1: Path, tmp_path: Path, other_vae: Any) -> None:
    latents = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
    with torch.no_grad():
        expected = other_vae.decode(torch.from_numpy(latents)).sample.numpy()
    for name, path in vae_files(other_vae, tmp_path).items():
        _, ours = load_pair(tiny_sd1)
        assert distance(ours.vae.decode(latents), expected) > 1e-2
        ours.load_vae(path)
        assert distance(ours.vae.decode(latents), expected) <= TOLERANCE, name


def test_another_vae_decodes_in_tiles_too(tiny_sd1: Path, tmp_path: Path, other_vae: Any) -> None:
    """What enable_vae_tiling has switched on is the pipeline's, whichever VAE it has."""
    _, ours = load_pair(tiny_sd1)
    latents = np.random.default_rng(0).standard_normal((1, 4, 16, 16)).astype(np.float32)
    ours.enable_vae_tiling()
    ours.load_vae(vae_files(other_vae, tmp_path)["folder"])
    in_tiles = ours.vae.decode(latents)
    ours.disable_vae_tiling()
    whole = ours.vae.decode(latents)
    ours.load_vae(tmp_path / "alone")
    assert distance(in_tiles, whole) > TOLERANCE and np.array_equal(ours.vae.decode(latents), whole)


def test_vae_that_does_not_fit(tiny_sd1: Path, tmp_path: Path, other_vae: Any) -> None:
    _, ours = load_pair(tiny_sd1)
    files = vae_files(other_vae, tmp_path)
    tensors = {key: tensor.contiguous() for key, tensor in other_vae.state_dict().items()}
    tensors.pop("decoder.conv_in.weight")
    save_file(tensors, tmp_path / "short.safetensors")
    diffusers.AutoencoderKL(latent_channels=16, norm_num_groups=4, block_out_channels=(4,)).save_pretrained(
        tmp_path / "other")
    torch.save(other_vae.state_dict(), tmp_path / "vae.pt")
    for path, named in ((tmp_path / "short.safetensors", "decoder.conv_in.weight"), (tmp_path / "other", "allowed: 4"),
                        (tmp_path / "vae.pt", "safetensors"), (tmp_path / "absent", "absent")):
        with pytest.raises(sdtune.Error) as caught:
            ours.load_vae(path)
        assert named in str(caught.value)
    ours.load_vae(files["folder"])


def test_program_takes_vae_and_embedding(tiny_sd1: Path, tmp_path: Path, other_vae: Any) -> None:
    _, ours = load_pair(tiny_sd1)
    write_embedding(tmp_path / "toy.safetensors", "sd1", 2)
    path = vae_files(other_vae, tmp_path)["ldm"]
    words = ["sample", "--model", str(tiny_sd1), "--prompt", "a (toy:1.2) cat", "--steps", "2", "--output", "out"]
    call = {"prompt": "a (toy:1.2) cat", "num_inference_steps": 2, "prompt_syntax": "weighted"}

    def image(*more: str) -> np.ndarray:
        done = run([*words, *more], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return np.asarray(Image.open(tmp_path / done.stdout.strip()), dtype=int)

    bare = np.asarray(ours(**call).images[0], dtype=int)
    ours.load_textual_inversion(tmp_path / "toy.safetensors")
    embedded = np.asarray(ours(**call).images[0], dtype=int)
    ours.load_vae(path)
    both = np.asarray(ours(**call).images[0], dtype=int)
    assert np.abs(image() - bare).max() <= 1
    for given in ("toy.safetensors", "toy.safetensors:toy"):
        assert np.abs(image("--embedding", given) - embedded).max() <= 1 < np.abs(embedded - bare).max()
    assert np.abs(image("--embedding", "toy.safetensors", "--vae", str(path)) - both).max() <= 1
    assert np.abs(both - embedded).max() > 1
    for option in ("--embedding", "--vae"):
        refused = run([*words, option, "nowhere.safetensors"], cwd=tmp_path)
        assert refused.returncode == 2 and "nowhere.safetensors" in refused.stderr

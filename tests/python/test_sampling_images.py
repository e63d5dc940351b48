"""Image to image, the second pass and the VAE's tiles beside diffusers' pipelines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import sdtune
import torch
from PIL import Image

from diffusers_schedulers import scheduler_class
from program import run

TOLERANCE = 1e-4  # relative L2 of final latents
PROMPT = "a photo of sks person on a beach"
SCHEDULERS = ["DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
              "EulerAncestralDiscreteScheduler", "HeunDiscreteScheduler", "DPMSolverMultistepScheduler",
              "DPMSolverSDEScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler", "LCMScheduler"]
Pair = tuple[Any, Any]


@pytest.fixture(scope="module")
def pairs(tiny_folder: Callable[[str], Path]) -> Callable[[str], Pair]:
    """pairs(family): diffusers' image-to-image pipeline and ours of one folder, with the folder's scheduler."""
    loaded: dict[str, Pair] = {}

    def pair_of(family: str) -> Pair:
        folder = tiny_folder(family)
        if family not in loaded:
            theirs = diffusers.AutoPipelineForImage2Image.from_pretrained(folder)
            theirs.set_progress_bar_config(disable=True)
            loaded[family] = theirs, sdtune.StableDiffusionPipeline.from_pretrained(folder, device="cpu")
        theirs, ours = loaded[family]
        config = json.loads((folder / "scheduler" / "scheduler_config.json").read_text())
        theirs.scheduler = scheduler_class(config["_class_name"]).from_config(config)
        ours.scheduler = getattr(sdtune, config["_class_name"]).from_config(config)
        return theirs, ours

    return pair_of


def photo(width: int = 32, height: int = 32, seed: int = 0) -> Image.Image:
    """Smooth colours, so that resizing is seen."""
    noise = np.random.default_rng(seed).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def distance(got: np.ndarray, expected: np.ndarray) -> float:
    assert got.shape == expected.shape and np.isfinite(expected).all()
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def draw(pair: Pair, image: Any, seed: int | list[int] = 7, prompt: str | list[str] = PROMPT,
         **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """(ours, diffusers') latents of the same call."""
    theirs, ours = pair
    options = {"num_inference_steps": 6, "guidance_scale": 7.5, "strength": 0.6} | options
    generator = [torch.Generator().manual_seed(s) for s in seed] if isinstance(seed, list) else (
        torch.Generator().manual_seed(seed))
    expected = theirs(prompt, image=image, generator=generator, output_type="latent", **options).images
    return ours(prompt, image=image, seed=seed, output_type="latent", **options).images, expected.numpy()


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_image_to_image_equals_diffusers(pairs: Callable[[str], Pair], family: str, name: str) -> None:
    pair = theirs, ours = pairs(family)
    options = {"clip_sample": False} if name in ("DDPMScheduler", "DDIMScheduler") else {}
    theirs.scheduler = scheduler_class(name).from_config(theirs.scheduler.config, **options)
    ours.scheduler = getattr(sdtune, name).from_config(ours.scheduler.config, **options)
    got, expected = draw(pair, photo())
    assert distance(got, expected) <= TOLERANCE
    assert distance(draw(pair, photo(), strength=0.4)[0], expected) > 10 * TOLERANCE
    assert distance(draw(pair, photo(seed=1))[0], expected) > 10 * TOLERANCE


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_own_scheduler(pairs: Callable[[str], Pair], family: str) -> None:
    got, expected = draw(pairs(family), photo())
    assert distance(got, expected) <= TOLERANCE


@pytest.mark.parametrize(("options", "steps", "strength"), [({"use_karras_sigmas": True, "rescale_betas_zero_snr": True}, 25, 0.85),
                                                            ({"use_exponential_sigmas": True}, 50, 0.1)], ids=["karras", "exponential"])
def test_a_run_begins_at_its_place_where_timesteps_repeat(pairs: Callable[[str], Pair], options: dict[str, bool], steps: int,
                                                          strength: float) -> None:
    """Rounded timesteps of a curve repeat: which of the equal ones is the first, its place says alone."""
    theirs, ours = pairs("sd2")
    theirs.scheduler = scheduler_class("DPMSolverMultistepScheduler").from_config(theirs.scheduler.config, **options)
    ours.scheduler = sdtune.DPMSolverMultistepScheduler.from_config(ours.scheduler.config, **options)
    got, expected = draw((theirs, ours), photo(), num_inference_steps=steps, strength=strength)
    timesteps = ours.scheduler.timesteps
    first = timesteps[steps - int(steps * strength)]
    assert (timesteps == first).sum() > 1 and distance(got, expected) <= TOLERANCE


CALLS: dict[str, dict[str, Any]] = {
    "all of it": {"strength": 1.0},
    "little": {"strength": 0.2},
    "resized": {"image": photo(47, 38)},
    "seed each": {"prompt": ["a cat", PROMPT], "seed": [3, 4]},
    "one seed, one image each": {"prompt": ["a cat", PROMPT], "image": [photo(), photo(seed=2)]},
    "no guidance": {"guidance_scale": 1.0},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_every_kind_of_call(pairs: Callable[[str], Pair], family: str, call: str) -> None:
    got, expected = draw(pairs(family), **{"image": photo()} | CALLS[call])
    assert distance(got, expected) <= TOLERANCE


def test_sdxl_s_vae_encodes_in_float32_and_decodes_in_bfloat16(tiny_sdxl: Path) -> None:
    """As diffusers with force_upcast: the init image's latents are sampled with noise of float32, which is other noise than bfloat16's."""
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sdxl, dtype="bfloat16", device="cpu")
    theirs = diffusers.StableDiffusionXLImg2ImgPipeline.from_pretrained(tiny_sdxl, torch_dtype=torch.bfloat16)
    theirs.set_progress_bar_config(disable=True)
    call = {"image": photo(), "num_inference_steps": 4, "strength": 0.3, "guidance_scale": 1.0, "output_type": "latent"}

    def of_theirs() -> np.ndarray:
        return theirs(PROMPT, generator=torch.Generator().manual_seed(3), **call).images.float().numpy()

    latents = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
    decoded = ours.vae.decode(latents)
    got = ours(PROMPT, seed=3, **call).images
    assert distance(got, of_theirs()) < 2e-2
    assert np.array_equal(ours.vae.decode(latents), decoded)
    theirs.vae.register_to_config(force_upcast=False)  # the mutant: all of it in bfloat16
    assert distance(got, of_theirs()) > 0.2


def in_mode(mode: str) -> Image.Image:
    """A PIL image that Pillow's own convert("RGB") reads otherwise than its file is read."""
    grey = np.asarray(photo().convert("L"))
    if mode == "I;16":
        return Image.fromarray(grey.astype(np.uint16) * 257)
    image = photo()
    image.putalpha(Image.fromarray(np.where(grey > 127, 255, 0).astype(np.uint8)))  # whole or none: nothing to round
    if mode == "LA":
        return image.convert("LA")
    if mode != "P":
        return image
    pixels = Image.fromarray(grey // 64)
    pixels.putpalette([value for level in range(4) for value in (level * 60, 255 - level * 60, level)])
    pixels.info["transparency"] = 2
    return pixels


@pytest.mark.parametrize("mode", ["I;16", "RGBA", "LA", "P"])
def test_a_pil_image_is_read_as_its_file(pairs: Callable[[str], Pair], tmp_path: Path, mode: str) -> None:
    """16 bits keep their high byte and alpha is laid on white, as --init-image and load_image read them."""
    ours, image = pairs("sd1")[1], in_mode(mode)
    assert image.mode == mode
    image.save(tmp_path / "image.png")
    call = {"num_inference_steps": 4, "strength": 0.5, "seed": 1, "output_type": "latent"}
    expected = ours(PROMPT, image=sdtune.load_image(tmp_path / "image.png"), **call).images
    assert distance(ours(PROMPT, image=image, **call).images, expected) <= TOLERANCE
    clipped = Image.fromarray(np.asarray(image.convert("RGB")))  # convert alone keeps a transparent colour in `info`
    assert distance(ours(PROMPT, image=clipped, **call).images, expected) > 100 * TOLERANCE  # the mutant


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_a_pil_image_without_a_known_white_is_refused(pairs: Callable[[str], Pair], kind: type) -> None:
    image = Image.fromarray(np.zeros((32, 32), kind))
    with pytest.raises(sdtune.ConfigError, match=f"image: got a PIL image of mode {image.mode}"):
        pairs("sd1")[1](PROMPT, image=image)


def test_latents_as_image(pairs: Callable[[str], Pair]) -> None:
    latents = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
    theirs, ours = pairs("sd1")
    expected = theirs(PROMPT, image=torch.from_numpy(latents), num_inference_steps=5, strength=0.6,
                      generator=torch.Generator().manual_seed(1), output_type="latent").images
    got = ours(PROMPT, image=latents, num_inference_steps=5, strength=0.6, seed=1, output_type="latent").images
    assert distance(got, expected.numpy()) <= TOLERANCE


@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_second_pass_is_its_parts(pairs: Callable[[str], Pair], family: str) -> None:
    """Latents of our first pass, enlarged by PyTorch, through diffusers' image to image with the same seed."""
    theirs, ours = pairs(family)
    call = {"num_inference_steps": 5, "seed": 4, "guidance_scale": 7.5, "output_type": "latent"}
    got = ours(PROMPT, hires_scale=1.5, hires_steps=8, hires_strength=0.5, **call).images
    first = torch.from_numpy(ours(PROMPT, **call).images)
    for mode, equal in (("bilinear", True), ("nearest", False)):
        larger = torch.nn.functional.interpolate(first, size=(12, 12), mode=mode)
        expected = theirs(PROMPT, image=larger, strength=0.5, num_inference_steps=8, output_type="latent",
                          generator=torch.Generator().manual_seed(4), guidance_scale=7.5).images
        assert (distance(got, expected.numpy()) <= TOLERANCE) == equal
    assert ours(PROMPT, hires_scale=1.5, **call | {"output_type": "np"}).images.shape == (1, 48, 48, 3)
    assert ours(PROMPT, hires_scale=1.22, **call).images.shape == (1, 4, 9, 9)  # int(32 * 1.22) // 4, as A1111


@pytest.mark.parametrize("family", ["sd1", "sdxl"])
@pytest.mark.parametrize("height, width", [(16, 16), (20, 9), (6, 15), (8, 8)])
def test_tiles_equal_diffusers(pairs: Callable[[str], Pair], family: str, height: int, width: int) -> None:
    theirs, ours = pairs(family)
    draw_from = np.random.default_rng(0)
    latents = draw_from.standard_normal((2, 4, height, width)).astype(np.float32)
    picture = draw_from.uniform(-1, 1, (1, 3, height * 4, width * 4)).astype(np.float32)
    whole = ours.vae.decode(latents)
    theirs.vae.enable_tiling()
    ours.enable_vae_tiling()
    try:
        with torch.no_grad():
            expected = theirs.vae.decode(torch.from_numpy(latents)).sample.numpy()
            moments = theirs.vae.encode(torch.from_numpy(picture)).latent_dist
        got, (mean, logvar) = ours.vae.decode(latents), ours.vae.encode(picture)
    finally:
        theirs.vae.disable_tiling()
        ours.disable_vae_tiling()
    assert distance(got, expected) <= 1e-5
    assert distance(mean, moments.mean.numpy()) <= 1e-5 and distance(logvar, moments.logvar.numpy()) <= 1e-5
    assert (distance(whole, expected) <= 1e-5) == (max(height, width) <= 8)


def test_slices_change_no_number(pairs: Callable[[str], Pair]) -> None:
    _, ours = pairs("sd1")
    latents = np.random.default_rng(0).standard_normal((3, 4, 8, 8)).astype(np.float32)
    one_by_one = ours.vae.decode(latents)
    ours.disable_vae_slicing()
    at_once = ours.vae.decode(latents)
    ours.enable_vae_slicing()
    assert distance(at_once, one_by_one) <= 1e-5


DECODE = """
import re, sys
import numpy as np
import sdtune
pipe = sdtune.StableDiffusionPipeline.from_pretrained(sys.argv[1], device="cpu")
getattr(pipe, sys.argv[2])()
pipe.vae.decode(np.zeros((8, 4, 64, 64), np.float32))
print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""


def test_slices_need_less_memory(tiny_sd1: Path) -> None:
    """Eight images of 256 px: one layer's output is 8 MiB for each of them."""
    one_by_one, at_once = (
        int(subprocess.run([sys.executable, "-c", DECODE, str(tiny_sd1), f"{word}_vae_slicing"], check=True,
                           capture_output=True, text=True).stdout) for word in ("enable", "disable"))
    assert at_once - one_by_one > 60_000  # kiB


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "strength": ({"image": photo(), "strength": 1.5}, "0 < x <= 1"),
    "strength of no step": ({"image": photo(), "strength": 0.1}, "leaves no step"),
    "image": ({"image": np.zeros((3, 5, 5, 5), np.float32)}, "B, H, W, 3"),
    "image without pixels": ({"image": np.zeros((0, 32, 3), np.float32)}, "B, H, W, 3"),
    "image of 0..255": ({"image": np.full((32, 32, 3), 7.0)}, "outside 0..1"),
    "image count": ({"image": [photo()] * 3, "prompt": ["a", "b"]}, "3 for 2"),
    "image and size": ({"image": np.zeros((32, 32, 3), np.float32), "width": 40}, "allowed: 40x32"),
    "hires_scale": ({"hires_scale": 0.5}, "1 <= x <= 8"),
    "strength of the second pass": ({"hires_scale": 2, "hires_strength": 0}, "0 < x <= 1"),
    "hires_steps": ({"hires_scale": 2, "hires_steps": 3, "timesteps": [900, 500]}, "given timesteps"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_named(pairs: Callable[[str], Pair], case: str) -> None:
    options, named = WRONG[case]
    with pytest.raises(sdtune.ConfigError, match=case.split()[0]) as caught:
        pairs("sd1")[1](**{"prompt": PROMPT, "num_inference_steps": 5, "output_type": "latent"} | options)
    assert named in str(caught.value)


def program_image(folder: Path, target: Path, *words: str) -> np.ndarray:
    done = run(["sample", "--model", str(folder), "--prompt", PROMPT, "--steps", "5", "--seed", "3",
                "--output", str(target), *words])
    assert done.returncode == 0, done.stderr
    return np.asarray(Image.open(done.stdout.strip()), dtype=int)


def test_program_starts_from_an_image(pairs: Callable[[str], Pair], tiny_sd1: Path, tmp_path: Path) -> None:
    ours = pairs("sd1")[1]
    photo(32, 24).save(tmp_path / "start.png")
    words = ["--init-image", str(tmp_path / "start.png"), "--strength", "0.6"]
    got = program_image(tiny_sd1, tmp_path / "out", *words)
    call = {"num_inference_steps": 5, "seed": 3}
    wanted = np.asarray(ours(PROMPT, image=photo(32, 24), strength=0.6, **call).images[0], dtype=int)
    assert np.abs(got - wanted).max() <= 1
    other = np.asarray(ours(PROMPT, image=photo(32, 24), strength=0.8, **call).images[0], dtype=int)
    assert np.abs(got - other).max() > 3
    assert program_image(tiny_sd1, tmp_path / "out", *words, "--width", "40", "--height", "36").shape == (36, 40, 3)
    photo(320, 160).save(tmp_path / "large.png")  # brought down to about the model's own number of pixels
    words[1] = str(tmp_path / "large.png")
    assert program_image(tiny_sd1, tmp_path / "out", *words).shape == (20, 44, 3)


def test_program_runs_a_second_pass(pairs: Callable[[str], Pair], tiny_sd1: Path, tmp_path: Path) -> None:
    ours = pairs("sd1")[1]
    words = ["--hires-scale", "2", "--hires-steps", "7", "--hires-strength", "0.5"]
    got = program_image(tiny_sd1, tmp_path / "out", *words)
    call = {"num_inference_steps": 5, "seed": 3, "hires_scale": 2, "hires_strength": 0.5}
    wanted, other = (np.asarray(ours(PROMPT, hires_steps=n, **call).images[0], dtype=int) for n in (7, 3))
    assert got.shape == (64, 64, 3) and np.abs(got - wanted).max() <= 1
    assert np.abs(got - other).max() > 3


def test_program_decodes_in_tiles(pairs: Callable[[str], Pair], tiny_sd1: Path, tmp_path: Path) -> None:
    ours = pairs("sd1")[1]
    size = ["--width", "64", "--height", "48"]
    got = program_image(tiny_sd1, tmp_path, *size, "--vae-tiling")
    whole = program_image(tiny_sd1, tmp_path, *size)
    ours.enable_vae_tiling()
    wanted = np.asarray(ours(PROMPT, num_inference_steps=5, seed=3, width=64, height=48).images[0], dtype=int)
    ours.disable_vae_tiling()
    assert np.abs(got - wanted).max() <= 1 < np.abs(got - whole).max()


def test_program_guides_as_asked(pairs: Callable[[str], Pair], tiny_sd1: Path, tmp_path: Path) -> None:
    ours = pairs("sd1")[1]
    ours.scheduler = sdtune.DDIMScheduler.from_config(ours.scheduler.config, clip_sample=False)
    got = program_image(tiny_sd1, tmp_path, "--sampler", "ddim", "--guidance-rescale", "0.7", "--eta", "0.5")
    call = {"num_inference_steps": 5, "seed": 3}
    wanted, *others = (np.asarray(ours(PROMPT, **call, **more).images[0], dtype=int) for more in (
        {"guidance_rescale": 0.7, "eta": 0.5}, {"guidance_rescale": 0.7}, {"eta": 0.5}))
    assert np.abs(got - wanted).max() <= 1
    assert all(np.abs(got - other).max() > 1 for other in others)


@pytest.mark.parametrize("words, named", [
    (["--guidance-rescale", "1.5"], ["--guidance-rescale", "got 1.5", "0 <= x <= 1"]),
    (["--eta", "-1"], ["--eta", "got -1", "0 <= x <= 1"]),
    (["--strength", "0"], ["--strength", "got 0", "0 < x <= 1"]),
    (["--init-image", "absent.png"], ["absent.png"]),
    (["--hires-scale", "0.5"], ["--hires-scale", "got 0.5", "1 <= x"]),
    (["--hires-strength", "2"], ["--hires-strength", "got 2"]),
    (["--hires-steps", "5"], ["--hires-steps", "--hires-scale"]),
    (["--strength", "0.5"], ["--strength", "--init-image"]),
])
def test_program_refuses(tiny_sd1: Path, tmp_path: Path, words: list[str], named: list[str]) -> None:
    done = run(["sample", "--model", str(tiny_sd1), "--prompt", "a", "--output", "out", *words], cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert all(text in done.stderr.splitlines()[-1] for text in named), done.stderr

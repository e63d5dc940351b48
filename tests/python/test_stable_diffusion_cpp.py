"""Our single files, LoRAs and images beside stable-diffusion.cpp's, which is another implementation in another library.

Not among the tests of scripts/test.sh, because it needs that program and bases of the published sizes: SD 1.5 alone, `-k sd1`, takes six to
ten minutes and 5 GB of disk on two cores:

    export SDTUNE_STABLE_DIFFUSION_CPP=$(scripts/stable_diffusion_cpp.sh)
    python -m pytest tests/python/test_stable_diffusion_cpp.py -n 0
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import sdtune
from diffusers import EulerDiscreteScheduler
from PIL import Image
from program import ROOT, run
from tiny_models import BETAS

pytestmark = pytest.mark.timeout(3600)
PEER = os.environ.get("SDTUNE_STABLE_DIFFUSION_CPP", "")
PROMPT, NEGATIVE = "a photo of a person on a beach", "a drawing of a dog"
STEPS, SEED = 6, 7
MOST_LEVELS, LEAST_CORRELATION = 3, 0.9999
LONG = " and ".join(["a photo of a person with a red hat on a blue coat"] * 9)  # above 75 tokens; no commas, at which A1111 and we cut and they do not

Pixels = np.ndarray
EVERY_FAMILY = pytest.mark.parametrize("base", ["sd1", "sd2", "sdxl"], indirect=True, scope="module")
WITH_ONE_ENCODER = pytest.mark.parametrize("base", ["sd1", "sd2"], indirect=True, scope="module")
SD1 = pytest.mark.parametrize("base", ["sd1"], indirect=True, scope="module")
SDXL = pytest.mark.parametrize("base", ["sdxl"], indirect=True, scope="module")


@dataclass
class Base:
    family: str
    folder: Path
    file: Path


def transpose_projection(file: Path) -> None:
    """The second text encoder's projection, in place. OpenCLIP multiplies by it from the right, as the original file and ours have it;
    they multiply from the left, and of such a file get other pooled embeddings (correlation of images 0.980 without this)."""
    with file.open("r+b") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        entry = json.loads(opened.read(length))["conditioner.embedders.1.model.text_projection"]
        begin, end = entry["data_offsets"]
        opened.seek(8 + length + begin)
        matrix = np.frombuffer(opened.read(end - begin), np.float16).reshape(entry["shape"])
        opened.seek(8 + length + begin)
        opened.write(matrix.T.tobytes())


@pytest.fixture(scope="module")
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """One of published size, as a folder and as the single file that we make of it."""
    assert PEER and Path(PEER).is_file(), "SDTUNE_STABLE_DIFFUSION_CPP names the program that scripts/stable_diffusion_cpp.sh built"
    work = tmp_path_factory.mktemp(request.param)
    folder, file = work / "base", work / "base.safetensors"
    # In a process of its own, whose memory is given back.
    subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
                    f"from pathlib import Path; from full_size_base import make_base; make_base({request.param!r}, Path({str(folder)!r}))"],
                   check=True)
    done = run(["convert", "--model", str(folder), "--output", str(file)], timeout=1200)
    assert done.returncode == 0, done.stderr
    if request.param == "sdxl":
        transpose_projection(file)
    yield Base(request.param, folder, file)
    shutil.rmtree(work)


def noise_levels(family: str) -> str:
    """Of STEPS steps of euler_trailing, as diffusers computes them: both programs take the same."""
    scheduler = EulerDiscreteScheduler(prediction_type="v_prediction" if family == "sd2" else "epsilon", timestep_spacing="trailing", **BETAS)
    scheduler.set_timesteps(STEPS)
    return ",".join(f"{level:.7g}" for level in scheduler.sigmas.tolist())


def ours(base: Base, output: Path, *words: str, prompt: str = PROMPT, seed: int = SEED) -> Pixels:
    done = run(["sample", "--model", str(base.folder), "--prompt", prompt, "--seed", str(seed), "--steps", str(STEPS), "--guidance-scale", "5",
                "--width", "128", "--height", "128", "--device", "cpu", "--dtype", "float32", "--output", str(output),
                *(() if "--sampler" in words else ("--sampler", "euler_trailing")),
                *(() if "--negative-prompt" in words else ("--negative-prompt", NEGATIVE)), *words],
               timeout=1200, OMP_NUM_THREADS=str(os.cpu_count()))
    assert done.returncode == 0, done.stderr
    (path,) = output.glob("*.png")
    return np.asarray(Image.open(path).convert("RGB"), np.float64)


def theirs(base: Base, output: Path, *words: str, prompt: str = PROMPT, seed: int = SEED) -> Pixels:
    output.mkdir()
    levels = () if "--scheduler" in words else ("--sigmas", noise_levels(base.family))
    prediction = ("--prediction", "v") if base.family == "sd2" else ()
    done = subprocess.run([PEER, "-m", str(base.file), "-p", prompt, "-s", str(seed), "--steps", str(STEPS), "--cfg-scale", "5", "-W", "128", "-H", "128",
                           "--rng", "cpu", "--type", "f32", "-t", str(os.cpu_count()), "-o", str(output / "image.png"), *levels, *prediction,
                           *(() if "--sampling-method" in words else ("--sampling-method", "euler")),
                           *(() if "-n" in words else ("-n", NEGATIVE)), *words],
                          capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return np.asarray(Image.open(output / "image.png").convert("RGB"), np.float64)


def correlation(one: Pixels, other: Pixels) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def compare(mine: Pixels, other: Pixels, what: str) -> None:
    largest, alike = np.abs(mine - other).max(), correlation(mine, other)
    print(f"{what}: largest difference {largest:.0f} of 255, correlation {alike:.6f}")
    assert largest <= MOST_LEVELS and alike >= LEAST_CORRELATION, (what, largest, alike)


def refuse(mine: Pixels, other: Pixels, what: str) -> None:
    """The mutant: what must not pass for the same image."""
    largest, alike = np.abs(mine - other).max(), correlation(mine, other)
    print(f"{what}: largest difference {largest:.0f} of 255, correlation {alike:.6f}")
    assert largest > 10 * MOST_LEVELS and alike < 0.99, (what, largest, alike)


@pytest.fixture(scope="module")
def plain(base: Base, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pixels, Pixels]:
    folder = tmp_path_factory.mktemp("plain")
    return ours(base, folder / "ours"), theirs(base, folder / "theirs")


@EVERY_FAMILY
def test_the_same_image_and_no_other(base: Base, plain: tuple[Pixels, Pixels], tmp_path: Path) -> None:
    """Every tensor of our single file is found there by its name: one that were not would be missing or random."""
    mine, other = plain
    assert mine.std() > 20, "an image without contrast shows nothing"
    compare(mine, other, f"{base.family}: prompt and negative prompt")
    refuse(mine, theirs(base, tmp_path / "seed", seed=SEED + 1), f"{base.family}: another seed")
    refuse(mine, theirs(base, tmp_path / "prompt", prompt="an oil painting of two cats"), f"{base.family}: another prompt")


# With SD 2.x they fill the chunk before a BREAK with ends of text, and A1111 and we with pads.
FILLED = ("a photo of a person" + " <|endoftext|>" * 70 + " on a beach", "a drawing" + " <|endoftext|>" * 73 + " of a dog")
WEIGHTED = "a (photo:1.4) of a person on a [beach]"
PROMPTS = {
    "BREAK": ("a photo of a person BREAK on a beach", "a drawing BREAK of a dog"),
    "above 75 tokens": (LONG, " ".join([NEGATIVE] * 16)),
    "without a negative prompt": (PROMPT, ""),
}


def compare_prompts(base: Base, prompt: str, negative: str, what: str, folder: Path) -> None:
    own, own_negative = FILLED if what == "BREAK" and base.family == "sd2" else (prompt, negative)
    mine = ours(base, folder / "ours", "--negative-prompt", own_negative, prompt=own)
    other = theirs(base, folder / "theirs", "-n", negative, prompt=prompt)
    if base.family == "sdxl" and not negative:  # the pooled embedding is zero too here, as in diffusers, and is not there
        assert correlation(mine, other) < LEAST_CORRELATION
    else:
        compare(mine, other, f"{base.family}: {what}")


@EVERY_FAMILY
@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_mean_the_same(base: Base, name: str, tmp_path: Path) -> None:
    compare_prompts(base, *PROMPTS[name], name, tmp_path)


@WITH_ONE_ENCODER
def test_weights_mean_the_same(base: Base, tmp_path: Path) -> None:
    """SDXL's: test_the_two_text_encoders_are_weighted_one_by_one_here_and_together_there."""
    compare_prompts(base, WEIGHTED, NEGATIVE, "weights", tmp_path)


@SD1
def test_clip_skip_is_counted_from_one_there(base: Base, plain: tuple[Pixels, Pixels], tmp_path: Path) -> None:
    """docs/prompts.md's table: diffusers' 1 is their 2."""
    mine = ours(base, tmp_path / "ours", "--clip-skip", "1")
    compare(mine, theirs(base, tmp_path / "theirs", "--clip-skip", "2"), "sd1: clip skip")
    refuse(mine, plain[0], "sd1: without it")


@SD1
def test_sampler_names_map(base: Base, tmp_path: Path) -> None:
    """docs/samplers.md's tables, with each program's own noise levels."""
    mine = ours(base, tmp_path / "ours", "--sampler", "dpm++2m_karras")
    alike = correlation(mine, theirs(base, tmp_path / "theirs", "--sampling-method", "dpm++2m", "--scheduler", "karras"))
    other = correlation(mine, theirs(base, tmp_path / "levels", "--sampling-method", "dpm++2m", "--scheduler", "sgm_uniform"))
    print(f"dpm++2m_karras: correlation {alike:.6f}, with sgm_uniform's levels {other:.6f}")
    assert alike >= LEAST_CORRELATION > other


@EVERY_FAMILY
def test_euler_trailing_is_sgm_uniform(base: Base, plain: tuple[Pixels, Pixels], tmp_path: Path) -> None:
    """By name, with their own noise levels, which lie at most one of 1000 timesteps beside ours."""
    other = theirs(base, tmp_path / "theirs", "--scheduler", "sgm_uniform")
    print(f"{base.family}: sgm_uniform: correlation {correlation(plain[0], other):.6f}")
    assert correlation(plain[0], other) >= LEAST_CORRELATION
    assert correlation(plain[0], theirs(base, tmp_path / "karras", "--scheduler", "karras")) < LEAST_CORRELATION  # 0.99981


def denoised(base: Base, latents: np.ndarray, context: np.ndarray, added: dict[str, np.ndarray] | None = None, begin: int = 0) -> Pixels:
    """euler_trailing from its step `begin` on, stated with the model's parts. context: of the negative prompt, then of the prompt."""
    unet, vae = (each.from_pretrained(str(base.folder / name), device="cpu")
                 for each, name in ((sdtune.UNet2DConditionModel, "unet"), (sdtune.AutoencoderKL, "vae")))
    scheduler = EulerDiscreteScheduler(timestep_spacing="trailing", **BETAS)
    scheduler.set_timesteps(STEPS)
    levels = scheduler.sigmas.numpy()
    for index in range(begin, STEPS):
        given = latents / np.sqrt(levels[index] ** 2 + 1)
        predicted = np.asarray(unet(np.concatenate([given, given]), float(scheduler.timesteps[index]), context, added))
        guided = predicted[:1] + 5 * (predicted[1:] - predicted[:1])
        latents = latents + (levels[index + 1] - levels[index]) * guided
    decoded = np.asarray(vae.decode(latents / vae.config["scaling_factor"]))[0].transpose(1, 2, 0)
    return np.round((decoded.clip(-1, 1) + 1) * 127.5)


def first_level() -> float:
    scheduler = EulerDiscreteScheduler(timestep_spacing="trailing", **BETAS)
    scheduler.set_timesteps(STEPS)
    return float(scheduler.init_noise_sigma)


def weighted(embeddings: np.ndarray, weights: dict[int, float]) -> np.ndarray:
    """[1, 77, D] with tokens that are weighted, scaled so that the mean of all stays what it was."""
    factors = np.ones((1, 77, 1), np.float32)
    for token, weight in weights.items():
        factors[0, token] = weight
    after = embeddings * factors
    return after * (embeddings.mean() / after.mean())


@SDXL
def test_the_two_text_encoders_are_weighted_one_by_one_here_and_together_there(base: Base, plain: tuple[Pixels, Pixels], tmp_path: Path) -> None:
    """A1111 keeps the mean of each encoder's values, as we do (docs/prompts.md); they keep that of both together."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(str(base.folder)).to("cpu")
    positive, negative, pooled, negative_pooled = (np.asarray(each) for each in pipe.encode_prompt(PROMPT, negative_prompt=NEGATIVE))
    del pipe
    weights = {2: 1.4, 8: 1 / 1.1}  # of "photo" and "beach", behind the token that begins a prompt
    one_by_one = np.concatenate([weighted(positive[..., :768], weights), weighted(positive[..., 768:], weights)], axis=-1)
    together = weighted(positive, weights)
    added = {"text_embeds": np.concatenate([negative_pooled, pooled]), "time_ids": np.tile(np.array([[128, 128, 0, 0, 128, 128]], np.float32), (2, 1))}
    noise = np.asarray(sdtune.Generator(SEED).randn(1, 4, 16, 16)) * first_level()
    mine, other = ours(base, tmp_path / "ours", prompt=WEIGHTED), theirs(base, tmp_path / "theirs", prompt=WEIGHTED)
    stated, their_stated = (denoised(base, noise, np.concatenate([negative, context]), added) for context in (one_by_one, together))
    compare(mine, stated, "sdxl: weights, ours")
    compare(other, their_stated, "sdxl: weights, theirs")
    # Weights change this base's images little, so that each must lie nearer to its own rule than the bound of the others asks.
    right, wrong = min(correlation(mine, stated), correlation(other, their_stated)), max(correlation(mine, other), correlation(mine, plain[0]))
    print(f"sdxl: weights, by its own rule at least {right:.6f}, by the other's or without weights at most {wrong:.6f}")
    assert right >= 0.99998 > wrong


def from_image(base: Base, image: Path, noise: np.ndarray, begin: int) -> Pixels:
    """The same from an image: its latents, noised by `noise`."""
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(str(base.folder)).to("cpu")
    positive, negative = pipe.encode_prompt(PROMPT, negative_prompt=NEGATIVE)
    vae = sdtune.AutoencoderKL.from_pretrained(str(base.folder / "vae"), device="cpu")
    scheduler = EulerDiscreteScheduler(timestep_spacing="trailing", **BETAS)
    scheduler.set_timesteps(STEPS)
    pixels = np.asarray(Image.open(image).convert("RGB"), np.float32).transpose(2, 0, 1)[None] / 127.5 - 1
    latents = np.asarray(vae.encode(pixels)[0]) * vae.config["scaling_factor"] + noise * scheduler.sigmas.numpy()[begin]
    return denoised(base, latents, np.concatenate([np.asarray(negative), np.asarray(positive)]), begin=begin)


@SD1
def test_an_init_image_differs_in_the_order_of_random_numbers_alone(base: Base, tmp_path: Path) -> None:
    """We sample the latents with the seed's first numbers and take the next for the noise, as diffusers; they begin with the noise. And
    their strength counts a step more: 3 of 6 begin where 4 of 6 do here. Latents have nearly no variance in this base."""
    image = tmp_path / "init.png"
    Image.open(ROOT / "examples" / "me" / "reserved-000003-000.png").convert("RGB").resize((128, 128)).save(image)
    numbers = np.asarray(sdtune.Generator(SEED).randn(2, 1, 4, 16, 16))
    first, second = (from_image(base, image, noise, 2) for noise in numbers)
    compare(ours(base, tmp_path / "ours", "--init-image", str(image), "--strength", "0.67"), second, "sd1: init image, ours")
    compare(theirs(base, tmp_path / "theirs", "--init-img", str(image), "--strength", "0.5"), first, "sd1: init image, theirs")
    refuse(first, second, "sd1: the other's numbers")


@SD1
def test_our_lora_does_there_what_it_does_here(base: Base, plain: tuple[Pixels, Pixels], tmp_path: Path) -> None:
    """One that we trained, at a rate that makes it matter: kohya's file of the run."""
    run_folder = tmp_path / "run"
    done = run(["train", "--method", "lora", "--base", str(base.folder), "--images", str(ROOT / "examples" / "me"), "--output", str(run_folder),
                "--resolution", "128", "--max-train-steps", "4", "--learning-rate", "0.01", "--lr-warmup-steps", "0", "--no-with-prior-preservation",
                "--train-text-encoder", "--train-batch-size", "1", "--device", "cpu", "--mixed-precision", "no", "--seed", "3"],
               timeout=3000, OMP_NUM_THREADS=str(os.cpu_count()))
    assert done.returncode == 0, done.stderr
    file = run_folder / "model" / "run.safetensors"
    assert file.is_file(), list((run_folder / "model").iterdir())
    mine = ours(base, tmp_path / "ours", "--lora", f"{file}:0.8")
    other = theirs(base, tmp_path / "theirs", "--lora-model-dir", str(file.parent), prompt=f"{PROMPT}<lora:run:0.8>")
    effect, their_effect = mine - plain[0], other - plain[1]
    print(f"LoRA: changes {effect.std():.1f} levels, correlation of what changes {correlation(effect, their_effect):.6f}")
    assert effect.std() > 5 and correlation(effect, their_effect) >= LEAST_CORRELATION
    compare(mine, other, "LoRA")

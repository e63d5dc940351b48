"""Whole sampling runs beside diffusers' pipelines: same seed, same prompt, same image."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import sdtune
import torch

from diffusers_schedulers import scheduler_class

TOLERANCE = 1e-4  # relative L2 of final latents
PROMPT = "a photo of sks person on a beach"
SCHEDULERS = ["DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
              "EulerAncestralDiscreteScheduler", "HeunDiscreteScheduler", "LMSDiscreteScheduler",
              "DPMSolverMultistepScheduler", "DPMSolverSDEScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler", "LCMScheduler"]
Pair = tuple[Any, Any]


@pytest.fixture(scope="module")
def pairs(tiny_folder: Callable[[str], Path]) -> Callable[[str], Pair]:
    """pairs(family): diffusers' pipeline and ours of one folder, loaded once, with the folder's scheduler."""
    loaded: dict[str, Pair] = {}

    def pair_of(family: str) -> Pair:
        if family not in loaded:
            loaded[family] = load_pair(tiny_folder(family))
        theirs, ours = loaded[family]
        fresh = getattr(diffusers, own_scheduler(tiny_folder(family))["_class_name"])
        theirs.scheduler = fresh.from_pretrained(tiny_folder(family), subfolder="scheduler")
        ours.scheduler = getattr(sdtune, fresh.__name__).from_config(own_scheduler(tiny_folder(family)))
        return theirs, ours

    return pair_of


def own_scheduler(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "scheduler" / "scheduler_config.json").read_text())


def load_pair(folder: Path) -> Pair:
    theirs = diffusers.DiffusionPipeline.from_pretrained(folder)
    theirs.set_progress_bar_config(disable=True)
    return theirs, sdtune.StableDiffusionPipeline.from_pretrained(folder, dtype="float32", device="cpu")


def set_scheduler(pair: Pair, name: str, **options: Any) -> None:
    """Gives both the scheduler of that class, made from the config they have."""
    theirs, ours = pair
    theirs.scheduler = scheduler_class(name).from_config(theirs.scheduler.config, **options)
    ours.scheduler = getattr(sdtune, name).from_config(ours.scheduler.config, **options)


def draw(pair: Pair, seed: int | list[int] = 7, our_seed: int | list[int] | None = None, output_type: str = "latent",
         prompt: str | list[str] = PROMPT, steps: int = 20, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """(ours, diffusers') of the same call."""
    theirs, ours = pair
    generator = [torch.Generator().manual_seed(s) for s in seed] if isinstance(seed, list) else (
        torch.Generator().manual_seed(seed))
    expected = theirs(prompt, generator=generator, num_inference_steps=steps,
                      output_type=output_type, **{"guidance_scale": 7.5} | options).images
    got = ours(prompt, seed=seed if our_seed is None else our_seed, num_inference_steps=steps,
               output_type=output_type, **{"guidance_scale": 7.5} | options).images
    return got, expected.numpy() if isinstance(expected, torch.Tensor) else expected


def distance(got: np.ndarray, expected: np.ndarray) -> float:
    assert got.shape == expected.shape and np.isfinite(expected).all()
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


# Settings of 20 steps. DDIM, epsilon and an active clip together are the one case that rounding alone carries off:
# test_ddim_that_clips_epsilon shows that diffusers leaves itself there, and compares the two step by step.
RUNS: list[tuple[str, dict[str, Any]]] = [(name, {"clip_sample": False}) for name in SCHEDULERS] + [
    ("DDPMScheduler", {"clip_sample": True}),
    ("DDIMScheduler", {"clip_sample": True, "prediction_type": "v_prediction"}),
]


@pytest.mark.parametrize("name, options", RUNS, ids=str)
@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_twenty_steps_equal_diffusers(pairs: Callable[[str], Pair], family: str, name: str,
                                      options: dict[str, Any]) -> None:
    pair = pairs(family)
    set_scheduler(pair, name, **options)
    got, expected = draw(pair)
    near = distance(got, expected)
    assert near <= TOLERANCE
    other, _ = draw(pair, our_seed=8)
    assert distance(other, expected) >= 10 * max(near, TOLERANCE)


class RecordedRun:
    """What diffusers' pipeline computes on its way: the UNet's inputs of each step, and the latents around it."""

    def __init__(self, pipe: Any, latents: np.ndarray, steps: int = 20, guidance_scale: float = 7.5) -> None:
        self.guidance_scale = guidance_scale
        self.unet_inputs: list[dict[str, Any]] = []
        self.latents: list[np.ndarray] = [latents]
        hook = pipe.unet.register_forward_pre_hook(self._keep_inputs, with_kwargs=True)
        pipe(PROMPT, latents=torch.from_numpy(latents), num_inference_steps=steps, output_type="latent",
             guidance_scale=guidance_scale, callback_on_step_end=self._keep_latents)
        hook.remove()

    def _keep_inputs(self, _: torch.nn.Module, words: tuple[Any, ...], named: dict[str, Any]) -> None:
        added = {key: value.numpy() for key, value in (named["added_cond_kwargs"] or {}).items()}
        self.unet_inputs.append({"sample": words[0].numpy(), "timestep": words[1].numpy(),
                                 "encoder_hidden_states": named["encoder_hidden_states"].numpy(),
                                 "added_cond_kwargs": added or None})

    def _keep_latents(self, _: Any, step: int, timestep: Any, values: dict[str, Any]) -> dict[str, Any]:
        self.latents.append(values["latents"].numpy().copy())
        return values

    def worst_step(self, ours: Any) -> float:
        """The largest relative distance of one step of ours from the same latents."""
        ours.scheduler.set_timesteps(len(self.unet_inputs))
        worst = 0.0
        for inputs, before, after in zip(self.unet_inputs, self.latents, self.latents[1:]):
            unconditional, conditional = np.split(ours.unet(**inputs), 2)
            guided = unconditional + np.float32(self.guidance_scale) * (conditional - unconditional)
            worst = max(worst, distance(ours.scheduler.step(guided, inputs["timestep"], before), after))
        return worst


@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_ddim_that_clips_epsilon(pairs: Callable[[str], Pair], family: str) -> None:
    """Each step from diffusers' latents equals diffusers'. Whole runs part, but no farther than diffusers from itself
    after one of its 256 start numbers moved by its last bit: such a run of a random model makes rounding grow."""
    pair = theirs, ours = pairs(family)
    set_scheduler(pair, "DDIMScheduler", clip_sample=True)
    start = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
    recorded = RecordedRun(theirs, start)
    step_error = recorded.worst_step(ours)
    assert step_error <= TOLERANCE

    moved = start.copy()
    moved[0, 0, 0, 0] = np.nextafter(moved[0, 0, 0, 0], np.float32(10))
    of_its_own = distance(RecordedRun(theirs, moved).latents[-1], recorded.latents[-1])
    between = distance(ours(PROMPT, latents=start, num_inference_steps=20, guidance_scale=7.5,
                            output_type="latent").images, recorded.latents[-1])
    print(f"{family}: step {step_error:.1e}, diffusers from itself {of_its_own:.1e}, ours from it {between:.1e}")
    assert of_its_own > 10 * TOLERANCE
    assert between <= 10 * of_its_own

    set_scheduler(pair, "DDIMScheduler", clip_sample=False)  # the mutant
    assert recorded.worst_step(ours) > 10 * TOLERANCE


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_own_scheduler_of_the_folder(pairs: Callable[[str], Pair], family: str) -> None:
    """As loaded: the folder's scheduler with the settings that diffusers' pipeline corrects, and v-prediction."""
    got, expected = draw(pairs(family))
    assert distance(got, expected) <= TOLERANCE


def test_sde_and_karras(pairs: Callable[[str], Pair]) -> None:
    pair = pairs("sd1")
    set_scheduler(pair, "DPMSolverMultistepScheduler", use_karras_sigmas=True, algorithm_type="sde-dpmsolver++")
    got, expected = draw(pair)
    assert distance(got, expected) <= TOLERANCE


CALLS: dict[str, dict[str, Any]] = {
    "negative": {"negative_prompt": "blurry, ugly"},
    "empty_negative": {"negative_prompt": ""},
    "no_guidance": {"guidance_scale": 1.0},
    "rescale": {"guidance_rescale": 0.7},
    "wide": {"height": 32, "width": 56},
    "tall": {"height": 40, "width": 24},
    "two_prompts": {"prompt": ["a cat", PROMPT]},
    "seed_each": {"prompt": ["a cat", "a cat", PROMPT], "seed": [3, 4, 5]},
    "copies": {"prompt": ["a cat", PROMPT], "num_images_per_prompt": 2},
    "long_prompt": {"prompt": "many words about a person " * 30},
    "eta": {"eta": 0.5, "scheduler": "DDIMScheduler"},
    "timesteps": {"timesteps": [999, 610, 200, 31], "scheduler": "EulerDiscreteScheduler"},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_every_kind_of_call(pairs: Callable[[str], Pair], family: str, call: str) -> None:
    pair = pairs(family)
    options = dict(CALLS[call])
    set_scheduler(pair, options.pop("scheduler", "EulerAncestralDiscreteScheduler"))
    got, expected = draw(pair, steps=5, **options)
    assert distance(got, expected) <= TOLERANCE


MUTANTS: dict[str, dict[str, Any]] = {
    "negative": {"negative_prompt": "blurry, ugly"},
    "scale": {"guidance_scale": 6.0},
    "rescale": {"guidance_rescale": 0.7},
    "prompt": {"prompt": "a photo of a person on a beach"},
}


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_another_call_is_seen(pairs: Callable[[str], Pair], family: str, mutant: str) -> None:
    pair = pairs(family)
    expected = draw(pair, steps=5)[1]
    got = draw(pair, steps=5, **MUTANTS[mutant])[0]
    assert distance(got, expected) > 3 * TOLERANCE


def test_size_conditioning_is_seen(pairs: Callable[[str], Pair]) -> None:
    pair = pairs("sdxl")
    got, expected = draw(pair, steps=5, original_size=(64, 96), crops_coords_top_left=(8, 4))
    assert distance(got, expected) <= TOLERANCE
    assert distance(draw(pair, steps=5)[0], expected) > 3 * TOLERANCE


def test_empty_and_absent_negative_differ_for_sdxl(pairs: Callable[[str], Pair]) -> None:
    """An absent one is zeros (force_zeros_for_empty_prompt), "" is encoded."""
    pair = pairs("sdxl")
    absent, _ = draw(pair, steps=5)
    empty, _ = draw(pair, steps=5, negative_prompt="")
    assert distance(empty, absent) > 10 * TOLERANCE


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_decoded_image(pairs: Callable[[str], Pair], family: str) -> None:
    got, expected = draw(pairs(family), output_type="np", prompt=["a cat", PROMPT], steps=5)
    assert got.shape == (2, 32, 32, 3) and got.dtype == np.float32
    assert np.abs(got - expected).max() <= 1e-3
    assert np.abs(got - draw(pairs(family), our_seed=9, output_type="np", prompt=["a cat", PROMPT], steps=5)[0]
                  ).max() > 1e-2


def test_given_latents(pairs: Callable[[str], Pair]) -> None:
    theirs, ours = pairs("sd1")
    latents = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype(np.float32)
    expected = theirs(PROMPT, latents=torch.from_numpy(latents), num_inference_steps=5, output_type="latent").images
    got = ours(PROMPT, latents=latents, num_inference_steps=5, output_type="latent").images
    assert distance(got, expected.numpy()) <= TOLERANCE


def test_outdated_scheduler_files_are_corrected_as_in_diffusers(tiny_sd1: Path, tmp_path: Path) -> None:
    """steps_offset 0 and clip_sample true, as SD 1.x files once had them, and absent keys."""
    for keys in ({"steps_offset": 0, "clip_sample": True}, {}):
        folder = tmp_path / f"outdated{len(keys)}"
        shutil.copytree(tiny_sd1, folder)
        config = {"_class_name": "DDIMScheduler", "beta_schedule": "scaled_linear", "beta_start": 0.00085,
                  "beta_end": 0.012, "set_alpha_to_one": False} | keys
        (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(config))
        index = json.loads((folder / "model_index.json").read_text())
        index["scheduler"] = ["diffusers", "DDIMScheduler"]
        (folder / "model_index.json").write_text(json.dumps(index))
        pair = load_pair(folder)
        got, expected = draw(pair, steps=6)
        assert distance(got, expected) <= TOLERANCE
        set_scheduler(pair, "DPMSolverMultistepScheduler")
        got, expected = draw(pair, steps=6)
        assert distance(got, expected) <= TOLERANCE


def test_sample_size_of_old_files_is_corrected_as_in_diffusers(tiny_sd1: Path, tmp_path: Path) -> None:
    """Files from before diffusers 0.9 say 32 for models of 64 x 64 cells; this one says 8."""
    folder = tmp_path / "old"
    shutil.copytree(tiny_sd1, folder)
    path = folder / "unet" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"_diffusers_version": "0.6.0"}))
    got, expected = draw(load_pair(folder), steps=2)
    assert got.shape == (1, 4, 64, 64) and distance(got, expected) <= TOLERANCE


def test_scheduler_file_with_infinity(tiny_sd1: Path, tmp_path: Path) -> None:
    """diffusers writes DPM-Solver's lambda_min_clipped as -Infinity, which JSON does not have."""
    theirs = diffusers.DiffusionPipeline.from_pretrained(tiny_sd1)
    theirs.scheduler = diffusers.DPMSolverMultistepScheduler.from_config(theirs.scheduler.config)
    theirs.save_pretrained(tmp_path / "saved")
    pair = load_pair(tmp_path / "saved")
    got, expected = draw(pair, steps=6)
    assert distance(got, expected) <= TOLERANCE
    pair[1].save_pretrained(str(tmp_path / "ours"))
    again = load_pair(tmp_path / "ours")
    got, expected = draw(again, steps=6)
    assert distance(got, expected) <= TOLERANCE


def test_half_precision_starts_from_diffusers_noise(tiny_sd1: Path) -> None:
    """The initial noise is drawn in bfloat16, which gives other numbers than rounding a float32 draw."""
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1, dtype="bfloat16", device="cpu")
    theirs = diffusers.StableDiffusionPipeline.from_pretrained(tiny_sd1, torch_dtype=torch.bfloat16)
    theirs.set_progress_bar_config(disable=True)
    got, expected = (pipe(PROMPT, num_inference_steps=2, output_type="latent", guidance_scale=1.0, **seed).images
                     for pipe, seed in ((ours, {"seed": 3}), (theirs, {"generator": torch.Generator().manual_seed(3)})))
    assert distance(got, expected.float().numpy()) < 2e-2
    other = ours(PROMPT, num_inference_steps=2, output_type="latent", guidance_scale=1.0, seed=4).images
    assert distance(other, expected.float().numpy()) > 0.2


def test_sizes_that_only_the_vae_factor_divides(pairs: Callable[[str], Pair]) -> None:
    """diffusers' pipelines refuse what 8 does not divide; with a VAE of factor 4 there is no reason to."""
    images = pairs("sd1")[1](PROMPT, num_inference_steps=2, output_type="np", height=36, width=20).images
    assert images.shape == (1, 36, 20, 3) and np.isfinite(images).all()


def test_steps_are_reported(pairs: Callable[[str], Pair]) -> None:
    ours = pairs("sd1")[1]
    seen: list[tuple[int, int]] = []
    images = ours(PROMPT, num_inference_steps=4, output_type="latent", on_step=lambda e: seen.append((e.step, e.total)))
    assert seen == [(step, len(ours.scheduler.timesteps)) for step in range(1, len(ours.scheduler.timesteps) + 1)]
    assert images.images.shape == (1, 4, 8, 8)


WRONG = {"height": {"height": 30}, "width": {"width": 31}, "num_inference_steps": {"num_inference_steps": 0},
         "seed": {"seed": [1, 2, 3]}, "timesteps": {"timesteps": []},
         "latents": {"latents": np.zeros((1, 4, 9, 9), np.float32)}}


@pytest.mark.parametrize("key", WRONG)
def test_wrong_values_are_named(pairs: Callable[[str], Pair], key: str) -> None:
    with pytest.raises(sdtune.ConfigError, match=key):
        pairs("sd1")[1]([PROMPT, PROMPT] if key == "seed" else PROMPT, output_type="latent", **WRONG[key])

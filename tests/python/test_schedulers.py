"""Schedulers beside diffusers': the same timesteps, sigmas and samples at every step."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import diffusers
import numpy as np
import pytest
import sdtune
import torch

TOLERANCE = 1e-5
SHAPE = (2, 4, 3, 5)
STABLE_DIFFUSION = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}
SPACINGS = ("leading", "linspace", "trailing")


def grid(**choices: tuple) -> Iterator[dict[str, Any]]:
    """All combinations of the choices."""
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values))


def ddpm_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction", "sample"),
                        clip_sample=(True, False), variance_type=("fixed_small", "fixed_large")):
        yield "DDPMScheduler", options, 7
    yield "DDPMScheduler", {"variance_type": "fixed_small_log", "clip_sample_range": 2.5}, 9
    yield "DDPMScheduler", {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing",
                            "prediction_type": "v_prediction"}, 9


def ddim_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction", "sample"),
                        set_alpha_to_one=(True, False), clip_sample=(True, False)):
        yield "DDIMScheduler", options, 7
    for options in grid(rescale_betas_zero_snr=(True,), timestep_spacing=("leading", "trailing"),
                        prediction_type=("v_prediction",), steps_offset=(0, 1)):
        yield "DDIMScheduler", options, 9


def pndm_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction"),
                        set_alpha_to_one=(True, False), skip_prk_steps=(True, False)):
        yield "PNDMScheduler", options, 11
    yield "PNDMScheduler", {"skip_prk_steps": True, "steps_offset": 1}, 2


def euler_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction", "sample"),
                        use_karras_sigmas=(True, False), final_sigmas_type=("zero", "sigma_min")):
        yield "EulerDiscreteScheduler", options, 7
    for options in grid(interpolation_type=("linear", "log_linear"), timestep_type=("discrete", "continuous"),
                        prediction_type=("epsilon", "v_prediction"), rescale_betas_zero_snr=(True, False)):
        yield "EulerDiscreteScheduler", options, 8
    yield "EulerDiscreteScheduler", {"use_exponential_sigmas": True}, 8
    yield "EulerDiscreteScheduler", {"use_karras_sigmas": True, "sigma_min": 0.1, "sigma_max": 12.0}, 8


def euler_ancestral_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction"), steps_offset=(0, 1),
                        rescale_betas_zero_snr=(True, False)):
        yield "EulerAncestralDiscreteScheduler", options, 7


def dpm_solver_cases() -> Iterator[tuple]:
    name = "DPMSolverMultistepScheduler"
    for options in grid(timestep_spacing=SPACINGS, algorithm_type=("dpmsolver++", "sde-dpmsolver++"),
                        solver_order=(1, 2, 3), use_karras_sigmas=(True, False), solver_type=("midpoint", "heun")):
        yield name, options, 8
    for options in grid(prediction_type=("epsilon", "v_prediction", "sample"), lower_order_final=(True, False),
                        euler_at_final=(True, False), final_sigmas_type=("zero", "sigma_min")):
        yield name, options, 6
    yield name, {"use_lu_lambdas": True}, 8
    yield name, {"use_exponential_sigmas": True}, 8
    yield name, {"lambda_min_clipped": -5.1, "beta_schedule": "squaredcos_cap_v2"}, 8
    yield name, {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing", "prediction_type": "v_prediction"}, 18
    yield name, {"solver_order": 3, "lower_order_final": True, "solver_type": "bh2"}, 20


def beta_cases() -> Iterator[tuple]:
    names = ("DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
             "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler")
    for name in names:
        yield name, {"beta_schedule": "linear", "beta_start": 0.0001, "beta_end": 0.02}, 5
        yield name, {"beta_schedule": "squaredcos_cap_v2"}, 5
        yield name, {"trained_betas": list(np.linspace(0.001, 0.02, 300)), "num_train_timesteps": 300}, 13
        yield name, {"num_train_timesteps": 600, "steps_offset": 1}, 33
        yield name, {"timestep_spacing": "trailing"}, 23


CASES = [case for cases in (ddpm_cases, ddim_cases, pndm_cases, euler_cases, euler_ancestral_cases, dpm_solver_cases,
                            beta_cases) for case in cases()]


def make_pair(name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """The scheduler of diffusers and ours, with the same options."""
    options = STABLE_DIFFUSION | options
    theirs = getattr(diffusers, name)
    known = inspect.signature(theirs.__init__).parameters
    options = {key: value for key, value in options.items() if key in known}
    return theirs(**options), getattr(sdtune, name)(**options)


def model(sample: np.ndarray, timestep: float) -> np.ndarray:
    """A function of the input and the timestep, with outputs of the size of noise."""
    return np.sin(3.0 * sample + 0.01 * float(timestep)).astype(np.float32)


def run_theirs(scheduler: Any, steps: int, seed: int = 3, eta: float = 0.0) -> list[np.ndarray]:
    scheduler.set_timesteps(steps)
    takes = inspect.signature(scheduler.step).parameters
    generator = torch.Generator("cpu").manual_seed(seed)
    sample = torch.from_numpy(start()) * scheduler.init_noise_sigma
    samples = []
    for t in scheduler.timesteps:
        output = torch.from_numpy(model(scheduler.scale_model_input(sample, t).numpy(), t))
        extra = ({"generator": generator} if "generator" in takes else {}) | ({"eta": eta} if "eta" in takes else {})
        sample = scheduler.step(output, t, sample, **extra).prev_sample
        samples.append(sample.numpy())
    return samples


def run_ours(scheduler: Any, steps: int, seed: int = 3, eta: float = 0.0) -> list[np.ndarray]:
    scheduler.set_timesteps(steps)
    generator = sdtune.Generator(seed)
    sample = start() * np.float32(scheduler.init_noise_sigma)
    samples = []
    for t in scheduler.timesteps:
        output = model(scheduler.scale_model_input(sample, t), t)
        sample = scheduler.step(output, t, sample, generator=generator, eta=eta)
        samples.append(sample)
    return samples


def start() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


def distance(left: list[np.ndarray], right: list[np.ndarray]) -> float:
    """The largest relative L2 distance of any step; infinite where the runs differ in length."""
    if len(left) != len(right):
        return float("inf")
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(left, right))


def label(case: tuple) -> str:
    name, options, steps = case
    short = "-".join(f"{key}={value if not isinstance(value, list) else 'list'}" for key, value in options.items())
    return f"{name}-{short}-{steps}"


def test_grid_is_large_enough() -> None:
    assert len(CASES) >= 200


@pytest.mark.parametrize("case", CASES, ids=label)
def test_every_step_equals_diffusers(case: tuple) -> None:
    name, options, steps = case
    theirs, ours = make_pair(name, options)
    expected, got = run_theirs(theirs, steps), run_ours(ours, steps)
    assert np.allclose(ours.timesteps, theirs.timesteps.numpy(), rtol=1e-6, atol=1e-4)
    assert ours.timesteps.dtype == theirs.timesteps.numpy().dtype
    if ours.sigmas is not None:
        assert np.allclose(ours.sigmas, theirs.sigmas.numpy(), rtol=1e-5)
    assert np.isclose(ours.init_noise_sigma, float(theirs.init_noise_sigma), rtol=1e-6)
    assert np.isfinite(expected[-1]).all()
    assert distance(got, expected) <= TOLERANCE


MUTANTS = [
    ("DDIMScheduler", {}, {"timestep_spacing": "trailing"}),
    ("DDIMScheduler", {}, {"prediction_type": "v_prediction"}),
    ("DDIMScheduler", {"set_alpha_to_one": True}, {"set_alpha_to_one": False}),
    ("DDIMScheduler", {}, {"clip_sample": False}),
    ("DDIMScheduler", {}, {"rescale_betas_zero_snr": True}),
    ("DDPMScheduler", {"variance_type": "fixed_small"}, {"variance_type": "fixed_large"}),
    ("PNDMScheduler", {"skip_prk_steps": True}, {"skip_prk_steps": True, "steps_offset": 1}),
    ("EulerDiscreteScheduler", {}, {"use_karras_sigmas": True}),
    ("EulerDiscreteScheduler", {}, {"final_sigmas_type": "sigma_min"}),
    ("EulerAncestralDiscreteScheduler", {}, {"timestep_spacing": "leading"}),
    ("DPMSolverMultistepScheduler", {}, {"solver_order": 3}),
    ("DPMSolverMultistepScheduler", {}, {"solver_type": "heun"}),
    ("DPMSolverMultistepScheduler", {}, {"algorithm_type": "sde-dpmsolver++"}),
    ("DPMSolverMultistepScheduler", {}, {"beta_schedule": "linear"}),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_another_option_is_seen(mutant: tuple) -> None:
    name, options, changed = mutant
    theirs, ours = make_pair(name, options)[0], make_pair(name, options | changed)[1]
    assert distance(run_ours(ours, 8), run_theirs(theirs, 8)) > 10 * TOLERANCE


def test_another_seed_is_seen() -> None:
    for name in ("DDPMScheduler", "EulerAncestralDiscreteScheduler"):
        theirs, ours = make_pair(name, {})
        assert distance(run_ours(ours, 8, seed=4), run_theirs(theirs, 8, seed=3)) > 1e-2


@pytest.mark.parametrize("eta", [0.3, 1.0])
@pytest.mark.parametrize("spacing", SPACINGS)
def test_ddim_takes_eta(eta: float, spacing: str) -> None:
    theirs, ours = make_pair("DDIMScheduler", {"timestep_spacing": spacing, "clip_sample": False})
    expected = run_theirs(theirs, 9, eta=eta)
    assert distance(run_ours(ours, 9, eta=eta), expected) <= TOLERANCE
    assert distance(run_ours(ours, 9, eta=0.0), expected) > 1e-2


def test_a_list_of_generators_draws_a_sample_each() -> None:
    theirs, ours = make_pair("EulerAncestralDiscreteScheduler", {})
    theirs.set_timesteps(5)
    ours.set_timesteps(5)
    sample, output = start(), model(start(), 0)
    for scheduler in (theirs, ours):
        scheduler.scale_model_input(torch.from_numpy(sample), scheduler.timesteps[0])
    expected = theirs.step(torch.from_numpy(output), theirs.timesteps[0], torch.from_numpy(sample),
                           generator=[torch.Generator().manual_seed(s) for s in (5, 6)]).prev_sample.numpy()
    got = ours.step(output, ours.timesteps[0], sample, generator=[sdtune.Generator(5), sdtune.Generator(6)])
    assert np.linalg.norm(got - expected) <= TOLERANCE * np.linalg.norm(expected)


def test_noise_may_be_given() -> None:
    """Given noise equals the same noise drawn; a scheduler that draws asks for one of the two."""
    ours = sdtune.DDPMScheduler()
    ours.set_timesteps(5)
    draw = sdtune.Generator(8).randn(*SHAPE)
    given = ours.step(model(start(), 1), ours.timesteps[0], start(), noise=draw)
    drawn = ours.step(model(start(), 1), ours.timesteps[0], start(), generator=sdtune.Generator(8))
    assert np.array_equal(given, drawn)
    with pytest.raises(sdtune.ConfigError, match="generator"):
        ours.step(model(start(), 1), ours.timesteps[0], start())


def test_generator_is_torch_generator() -> None:
    ours, theirs = sdtune.Generator(123), torch.Generator("cpu").manual_seed(123)
    for shape in ((3,), (2, 5), (4, 4, 8, 8)):
        assert np.array_equal(ours.randn(*shape), torch.randn(shape, generator=theirs).numpy())


@pytest.mark.parametrize("name", sorted({case[0] for case in CASES}))
def test_add_noise_equals_diffusers(name: str) -> None:
    theirs, ours = make_pair(name, {})
    theirs.set_timesteps(10)
    ours.set_timesteps(10)
    t = theirs.timesteps[[2, 6]]
    noise = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    expected = theirs.add_noise(torch.from_numpy(start()), torch.from_numpy(noise), t).numpy()
    got = ours.add_noise(start(), noise, t.numpy())
    assert np.linalg.norm(got - expected) <= TOLERANCE * np.linalg.norm(expected)
    other = ours.add_noise(start(), noise, t.flip(0).numpy())
    assert np.linalg.norm(other - expected) > 100 * TOLERANCE * np.linalg.norm(expected)


@pytest.mark.parametrize("source", sorted({case[0] for case in CASES}))
@pytest.mark.parametrize("target", sorted({case[0] for case in CASES}))
def test_from_config_across_classes_equals_diffusers(source: str, target: str) -> None:
    """Only given keys travel; a target's own defaults hold for the others."""
    theirs = getattr(diffusers, target).from_config(getattr(diffusers, source)(**STABLE_DIFFUSION).config)
    ours = getattr(sdtune, target).from_config(getattr(sdtune, source)(**STABLE_DIFFUSION).config)
    assert ours.config["_class_name"] == target
    for key, value in ours.config.items():
        if key in theirs.config and not key.startswith("_"):
            assert value == theirs.config[key], key


def test_from_config_takes_diffusers_config_and_keywords() -> None:
    config = diffusers.PNDMScheduler(**STABLE_DIFFUSION, skip_prk_steps=True, steps_offset=1).config
    ours = sdtune.DPMSolverMultistepScheduler.from_config(dict(config), use_karras_sigmas=True)
    theirs = diffusers.DPMSolverMultistepScheduler.from_config(config, use_karras_sigmas=True)
    assert distance(run_ours(ours, 8), run_theirs(theirs, 8)) <= TOLERANCE


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(sdtune.WeightError, match="use_karras_sigmas"):
        sdtune.EulerDiscreteScheduler(use_karras_sigma=True)
    with pytest.raises(sdtune.WeightError, match="squaredcos_cap_v2"):
        sdtune.DDIMScheduler(beta_schedule="sigmoid")
    with pytest.raises(sdtune.WeightError, match="thresholding"):
        sdtune.DDPMScheduler(thresholding=True)
    with pytest.raises(sdtune.ConfigError, match="num_inference_steps"):
        sdtune.DDIMScheduler().set_timesteps(1001)
    with pytest.raises(RuntimeError, match="before set_timesteps"):
        sdtune.DDIMScheduler().step(start(), 10, start())

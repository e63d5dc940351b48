"""Schedulers beside diffusers': the same timesteps, sigmas and samples at every step."""

from __future__ import annotations

import inspect
from typing import Any

import diffusers
import numpy as np
import pytest
import sdtune
import torch
from diffusers.schedulers.scheduling_utils import AysSchedules

from diffusers_schedulers import IndependentNoise, scheduler_class
from scheduler_cases import CASES, NAMES, SPACINGS

TOLERANCE = 1e-5
SHAPE = (2, 4, 3, 5)
STABLE_DIFFUSION = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}


def make_pair(name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """The scheduler of diffusers and ours, with the same options."""
    options = STABLE_DIFFUSION | options
    theirs = scheduler_class(name)
    known = inspect.signature(theirs.__init__).parameters
    options = {key: value for key, value in options.items() if key in known}
    return theirs(**options), getattr(sdtune, name)(**options)


def model(sample: np.ndarray, timestep: float) -> np.ndarray:
    """A function of the input and the timestep, with outputs of the size of noise."""
    return np.sin(3.0 * sample + 0.01 * float(np.float32(timestep))).astype(np.float32)


def begin(scheduler: Any, steps: int | list[int]) -> None:
    if isinstance(steps, list):
        scheduler.set_timesteps(timesteps=steps)
    else:
        scheduler.set_timesteps(steps)


def run_theirs(scheduler: Any, steps: int | list[int], seed: int = 3, eta: float = 0.0,
               first: np.ndarray | None = None) -> list[np.ndarray]:
    begin(scheduler, steps)
    takes = inspect.signature(scheduler.step).parameters
    generator = torch.Generator("cpu").manual_seed(seed)
    sample = torch.from_numpy(start() if first is None else first) * scheduler.init_noise_sigma
    samples = []
    for t in scheduler.timesteps:
        output = torch.from_numpy(model(scheduler.scale_model_input(sample, t).numpy(), t))
        extra = ({"generator": generator} if "generator" in takes else {}) | ({"eta": eta} if "eta" in takes else {})
        sample = scheduler.step(output, t, sample, **extra).prev_sample
        samples.append(sample.numpy())
    return samples


def run_ours(scheduler: Any, steps: int | list[int], seed: int = 3, eta: float = 0.0,
             follow: list[np.ndarray] | None = None) -> list[np.ndarray]:
    """The sample after each step; with `follow`, each step begins at the sample which that run has there."""
    begin(scheduler, steps)
    generator = sdtune.Generator(seed)
    sample = start() * np.float32(scheduler.init_noise_sigma)
    samples = []
    for index, t in enumerate(scheduler.timesteps):
        if follow and index > 0:
            sample = follow[index - 1]
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
    return f"{name}-{short}-{steps if isinstance(steps, int) else '-'.join(map(str, steps))}"


def of_its_own(theirs: Any, steps: int | list[int], expected: list[np.ndarray]) -> float:
    """How far diffusers' run leaves itself when its start numbers move by their last bit."""
    return distance(run_theirs(theirs, steps, first=np.nextafter(start(), np.float32(10))), expected)


def test_grid_is_large_enough() -> None:
    assert len(CASES) >= 200
    assert {case[0] for case in CASES} == set(NAMES)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_every_step_equals_diffusers(case: tuple) -> None:
    name, options, steps = case
    theirs, ours = make_pair(name, options)
    expected, got = run_theirs(theirs, steps), run_ours(ours, steps)
    assert np.allclose(ours.timesteps, theirs.timesteps.numpy(), rtol=1e-6, atol=1e-4)
    # DPMSolverSDEScheduler keeps float64, of which the model sees float32.
    assert ours.timesteps.dtype == (theirs.timesteps.float() if name == "DPMSolverSDEScheduler" else theirs.timesteps
                                    ).numpy().dtype
    if ours.sigmas is not None:
        assert np.allclose(ours.sigmas, theirs.sigmas.numpy(), rtol=1e-5)
    assert np.isclose(ours.init_noise_sigma, float(theirs.init_noise_sigma), rtol=1e-6)
    assert np.isfinite(expected[-1]).all()
    assert distance(run_ours(ours, steps, follow=expected), expected) <= TOLERANCE
    whole = distance(got, expected)
    assert whole <= TOLERANCE or whole <= 10 * of_its_own(theirs, steps, expected)


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
    ("HeunDiscreteScheduler", {}, {"use_karras_sigmas": True}),
    ("HeunDiscreteScheduler", {}, {"use_exponential_sigmas": True}),
    ("HeunDiscreteScheduler", {}, {"clip_sample": True}),
    ("HeunDiscreteScheduler", {}, {"prediction_type": "v_prediction"}),
    ("LMSDiscreteScheduler", {}, {"use_karras_sigmas": True}),
    ("LMSDiscreteScheduler", {"use_karras_sigmas": True}, {"use_karras_sigmas": False, "use_exponential_sigmas": True}),
    ("LMSDiscreteScheduler", {}, {"timestep_spacing": "trailing"}),
    ("DPMSolverSDEScheduler", {}, {"use_karras_sigmas": True}),
    ("DPMSolverSDEScheduler", {}, {"timestep_spacing": "leading"}),
    ("LCMScheduler", {}, {"clip_sample": True}),
    ("LCMScheduler", {}, {"timestep_scaling": 0.01}),
    ("LCMScheduler", {}, {"original_inference_steps": 25}),
    ("UniPCMultistepScheduler", {}, {"solver_order": 3}),
    ("UniPCMultistepScheduler", {}, {"solver_order": 1}),
    ("UniPCMultistepScheduler", {}, {"solver_type": "bh1"}),
    ("UniPCMultistepScheduler", {}, {"predict_x0": False}),
    ("UniPCMultistepScheduler", {}, {"disable_corrector": [3]}),
    ("UniPCMultistepScheduler", {}, {"use_exponential_sigmas": True}),
    ("UniPCMultistepScheduler", {"solver_order": 3}, {"solver_order": 3, "lower_order_final": False}),
    ("DEISMultistepScheduler", {}, {"solver_order": 3}),
    ("DEISMultistepScheduler", {}, {"solver_order": 1}),
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


def test_other_timesteps_are_seen() -> None:
    """Each table is another run, and neither is the spacing's."""
    theirs, ours = make_pair("DPMSolverMultistepScheduler", {})
    expected = run_theirs(theirs, AysSchedules["StableDiffusionTimesteps"])
    assert distance(run_ours(ours, AysSchedules["StableDiffusionXLTimesteps"]), expected) > 1e-2
    assert distance(run_ours(ours, 10), expected) > 1e-2
    assert distance(run_ours(ours, AysSchedules["StableDiffusionTimesteps"]), expected) <= TOLERANCE


def log_linear_timesteps(table: list[int], steps: int) -> np.ndarray:
    """What the authors of "align your steps" say for other numbers of steps, in NumPy: their eleven levels, the last
    of which ends the last step, interpolated in the log of sigma."""
    alphas = diffusers.DDIMScheduler(**STABLE_DIFFUSION).alphas_cumprod.double().numpy()
    log_sigmas = np.log((1 - alphas) / alphas) / 2
    levels = log_sigmas[table + [0]]
    wanted = np.interp(np.linspace(0, 1, steps + 1), np.linspace(0, 1, 11), levels)[:-1]
    return np.interp(wanted, log_sigmas, np.arange(1000))


@pytest.mark.parametrize("xl", [False, True])
def test_align_your_steps_tables(xl: bool) -> None:
    """The tables of diffusers for ten steps, the authors' interpolation for others, and a refusal beyond."""
    ours = sdtune.EulerDiscreteScheduler(**STABLE_DIFFUSION)
    name = "StableDiffusionXL" if xl else "StableDiffusion"
    table = AysSchedules[f"{name}Timesteps"]
    assert ours.ays_timesteps(xl=xl) == table
    for steps in (1, 3, 4, 7, 15, 20, 25, 50):
        got = np.array(ours.ays_timesteps(steps, xl=xl))
        assert np.abs(got - log_linear_timesteps(table, steps)).max() <= 0.5 + 1e-3
        other = AysSchedules["StableDiffusionTimesteps" if xl else "StableDiffusionXLTimesteps"]
        assert steps < 3 or np.abs(got - log_linear_timesteps(other, steps)).max() > 3  # the mutant
    ours.set_timesteps(timesteps=table)
    assert np.allclose(ours.sigmas, AysSchedules[f"{name}Sigmas"], atol=2e-3, rtol=2e-3)
    limit = 59 if xl else 73  # beyond it, two steps would begin at the same timestep
    assert len(set(ours.ays_timesteps(limit, xl=xl))) == limit
    for steps in (0, limit + 1, 100, 900):
        with pytest.raises(sdtune.ConfigError, match=rf"num_inference_steps.*got {steps}; allowed: 1\.\.{limit}\)"):
            ours.ays_timesteps(steps, xl=xl)
    with pytest.raises(sdtune.ConfigError, match="num_train_timesteps"):
        sdtune.DDIMScheduler(num_train_timesteps=500).ays_timesteps(10)


@pytest.mark.parametrize("name", ["DDIMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler"])
def test_trailing_has_no_timestep_below_zero(name: str) -> None:
    """diffusers' 61 steps of 1000 are 62, because NumPy rounds their division up; its tables read -1 as the noisiest."""
    theirs, ours = make_pair(name, {"timestep_spacing": "trailing"})
    theirs.set_timesteps(61)
    ours.set_timesteps(61)
    assert len(theirs.timesteps) == 62 and int(theirs.timesteps[-1]) == -1
    assert np.array_equal(ours.timesteps, theirs.timesteps.numpy()[:-1])


WRONG_TIMESTEPS = [
    ("DDIMScheduler", {}, [900, 5], "DPMSolverMultistepScheduler"),
    ("UniPCMultistepScheduler", {}, [900, 5], "EulerDiscreteScheduler"),
    ("EulerDiscreteScheduler", {"use_karras_sigmas": True}, [900, 5], "use_karras_sigmas"),
    ("HeunDiscreteScheduler", {"use_exponential_sigmas": True}, [900, 5], "use_exponential_sigmas"),
    ("DPMSolverMultistepScheduler", {"use_lu_lambdas": True}, [900, 5], "use_lu_lambdas"),
    ("EulerDiscreteScheduler", {"timestep_type": "continuous", "prediction_type": "v_prediction"}, [9],
     "timestep_type"),
    ("EulerDiscreteScheduler", {}, [5, 900], "999..0"),
    ("EulerDiscreteScheduler", {}, [900, 900], "999..0"),
    ("EulerDiscreteScheduler", {}, [1000, 5], "999..0"),
    ("EulerDiscreteScheduler", {}, [5, -1], "999..0"),
    ("EulerDiscreteScheduler", {}, [], "999..0"),
]


@pytest.mark.parametrize("name, options, timesteps, named", WRONG_TIMESTEPS, ids=str)
def test_wrong_timesteps_are_refused(name: str, options: dict[str, Any], timesteps: list[int], named: str) -> None:
    with pytest.raises(sdtune.ConfigError, match=f"timesteps.*{named}"):
        getattr(sdtune, name)(**options).set_timesteps(timesteps=timesteps)


def test_set_timesteps_takes_one_of_the_two() -> None:
    for arguments in ({}, {"num_inference_steps": 2, "timesteps": [9, 5]}):
        with pytest.raises(sdtune.ConfigError, match="timesteps"):
            sdtune.EulerDiscreteScheduler().set_timesteps(**arguments)


def test_another_seed_is_seen() -> None:
    for name in ("DDPMScheduler", "EulerAncestralDiscreteScheduler", "DPMSolverSDEScheduler", "LCMScheduler"):
        theirs, ours = make_pair(name, {})
        assert distance(run_ours(ours, 8, seed=4), run_theirs(theirs, 8, seed=3)) > 1e-2


def test_the_halves_of_an_sde_step_share_their_noise() -> None:
    """With fresh noise for each half, which torchsde's tree does not give, the run is another one."""
    theirs, ours = make_pair("DPMSolverSDEScheduler", {})
    expected, got = run_theirs(theirs, 8), run_ours(ours, 8)
    assert distance(got, expected) <= TOLERANCE
    theirs.path_class = IndependentNoise
    assert distance(got, run_theirs(theirs, 8)) > 1e-2


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


@pytest.mark.parametrize("shape", [(2.5,), ("two",), ((2, 4),), (2, -1)])
def test_a_shape_of_other_than_whole_numbers_is_refused(shape: tuple[object, ...]) -> None:
    with pytest.raises(sdtune.ConfigError, match=r"shape: got .*allowed: whole numbers from 0"):
        sdtune.Generator(1).randn(*shape)


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", ["EulerDiscreteScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler"])
def test_a_begin_index_is_diffusers(name: str) -> None:
    """Noise of the place that was said, before the first step and within the run; until the next set_timesteps."""
    pair = theirs, ours = make_pair(name, {"use_karras_sigmas": True})
    noise = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    for one in pair:
        one.set_timesteps(25)
        one.set_begin_index(21)

    def noisy() -> tuple[np.ndarray, np.ndarray]:
        t = theirs.timesteps[21:22]
        expected = theirs.add_noise(torch.from_numpy(start()), torch.from_numpy(noise), t.repeat(len(noise))).numpy()
        return ours.add_noise(start(), noise, np.repeat(t.numpy(), len(noise))), expected

    got, expected = noisy()
    assert distance([got], [expected]) <= TOLERANCE
    for t in theirs.timesteps[21:23]:
        want = theirs.step(torch.from_numpy(noise), t, torch.from_numpy(start())).prev_sample.numpy()
        assert distance([ours.step(noise, float(t), start())], [want]) <= TOLERANCE
    within, expected = noisy()
    assert distance([within], [expected]) <= TOLERANCE and distance([within], [got]) > 100 * TOLERANCE
    with pytest.raises(sdtune.ConfigError, match="begin_index"):
        ours.set_begin_index(25)
    ours.set_timesteps(25)
    ours.step(noise, float(ours.timesteps[3]), start())


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_from_config_across_classes_equals_diffusers(source: str, target: str) -> None:
    """Only given keys travel; a target's own defaults hold for the others."""
    theirs = scheduler_class(target).from_config(scheduler_class(source)(**STABLE_DIFFUSION).config)
    ours = getattr(sdtune, target).from_config(getattr(sdtune, source)(**STABLE_DIFFUSION).config)
    assert ours.config["_class_name"] == target
    for key, value in ours.config.items():
        if key in theirs.config and not key.startswith("_"):
            assert value == theirs.config[key], key


@pytest.mark.parametrize("source", NAMES)
def test_a_saved_config_goes_into_every_class(source: str) -> None:
    """A scheduler_config.json of diffusers has every key of its class, also what another class's key of that name cannot be."""
    config = scheduler_class(source)(**STABLE_DIFFUSION).config
    saved = {key: value for key, value in config.items() if not key.startswith("_")}
    for target in NAMES:
        # From DEIS diffusers refuses the default of this one key of DPM-Solver, for which ours means what it means there.
        more = {"final_sigmas_type": "sigma_min"} if (source, target) == ("DEISMultistepScheduler", "DPMSolverMultistepScheduler") else {}
        theirs, ours = scheduler_class(target).from_config(saved, **more), getattr(sdtune, target).from_config(saved, **more)
        for key, value in ours.config.items():
            # A solver of another class stays in ours and means the default's; so does None.
            if key in theirs.config and not key.startswith("_") and key != "solver_type" and saved.get(key, value) is not None:
                assert value == theirs.config[key], (target, key)


def test_a_variance_of_ddpm_changes_no_dpm_solver() -> None:
    config = diffusers.DDPMScheduler(**STABLE_DIFFUSION, variance_type="fixed_large").config
    ours = sdtune.DPMSolverMultistepScheduler.from_config(dict(config))
    theirs = diffusers.DPMSolverMultistepScheduler.from_config(config)
    assert distance(run_ours(ours, 8), run_theirs(theirs, 8)) <= TOLERANCE


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

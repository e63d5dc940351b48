"""Our solvers beside Katherine Crowson's own samplers, which A1111-style programs run and diffusers rewrote: whole runs over the same noise
levels with the same draws. DDIM, DDPM, PNDM, UniPC and LCM are not among hers."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
import sdtune
import torch
from diffusers_schedulers import BrownianPath, IndependentNoise
from test_schedulers import STABLE_DIFFUSION, model, start

TOLERANCE = 1e-4
SEED = 3
STEPS = 9
CURVES = {"own": {}, "karras": {"use_karras_sigmas": True}, "exponential": {"use_exponential_sigmas": True},
          "trailing": {"timestep_spacing": "trailing"}}
SDE = {"algorithm_type": "sde-dpmsolver++"}

# Ours -> her sampler, our class, its options.
SOLVERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "euler": ("sample_euler", "EulerDiscreteScheduler", {}),
    "euler_a": ("sample_euler_ancestral", "EulerAncestralDiscreteScheduler", {}),
    "heun": ("sample_heun", "HeunDiscreteScheduler", {}),
    "lms": ("sample_lms", "LMSDiscreteScheduler", {}),
    "dpm++2m": ("sample_dpmpp_2m", "DPMSolverMultistepScheduler", {}),
    "dpm++2m_sde": ("sample_dpmpp_2m_sde", "DPMSolverMultistepScheduler", SDE),
    "dpm++2m_sde, heun": ("sample_dpmpp_2m_sde", "DPMSolverMultistepScheduler", SDE | {"solver_type": "heun"}),
    "dpm++sde": ("sample_dpmpp_sde", "DPMSolverSDEScheduler", {}),
}
CASES = [(solver, curve) for solver in SOLVERS for curve in CURVES if solver != "euler_a" or curve in ("own", "trailing")]


def make(solver: str, curve: str) -> Any:
    """Our scheduler, at the start of a run."""
    _, name, options = SOLVERS[solver]
    scheduler = getattr(sdtune, name)(**STABLE_DIFFUSION, **CURVES[curve], **options)
    scheduler.set_timesteps(STEPS)
    return scheduler


def levels(scheduler: Any) -> torch.Tensor:
    """The noise levels of a run without those that our two-call solvers visit twice: [steps + 1], the last 0."""
    sigmas = torch.from_numpy(np.array(scheduler.sigmas, np.float32))
    kept = torch.cat([torch.tensor([True]), sigmas[1:] != sigmas[:-1]])
    return sigmas[kept]


def run_ours(scheduler: Any, seed: int = SEED) -> np.ndarray:
    generator, sample = sdtune.Generator(seed), start() * np.float32(scheduler.init_noise_sigma)
    for t in scheduler.timesteps:
        output = model(scheduler.scale_model_input(sample, t), t)
        sample = scheduler.step(output, t, sample, generator=generator)
    return sample


def run_hers(solver: str, scheduler: Any, path_class: type[BrownianPath] = BrownianPath, **changes: Any) -> np.ndarray:
    """Her sampler over our levels. She keeps the noise at its own size where the multistep solvers of diffusers scale it to a variance
    of 1; those also round their timesteps or cut their fractions off, so the model is called with ours."""
    scales = scheduler.config["_class_name"] == "DPMSolverMultistepScheduler"
    sigmas, ours = levels(scheduler), np.asarray(scheduler.timesteps, np.float64)

    def call(sample: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        nearest = float(ours[np.abs(ours - float(t[0])).argmin()])
        return torch.from_numpy(model(sample.numpy(), nearest if abs(nearest - float(t[0])) <= 1 else float(t[0])))

    alphas = torch.cumprod(1 - torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float32) ** 2, 0)
    denoiser = oracles.k_diffusion("external").DiscreteEpsDDPMDenoiser(call, alphas, quantize=False)
    size = float((1 + sigmas[0] ** 2) ** 0.5) if scales else scheduler.init_noise_sigma
    options, generator = dict(changes), torch.Generator().manual_seed(SEED)
    if solver == "dpm++sde":
        options["noise_sampler"] = path_class(generator, start().shape)
    elif solver.startswith(("euler_a", "dpm++2m_sde")):
        options["noise_sampler"] = lambda *_: torch.randn(start().shape, generator=generator)
    if solver.startswith("dpm++2m_sde"):
        options.setdefault("solver_type", "heun" if solver.endswith("heun") else "midpoint")
    sampler = getattr(oracles.k_diffusion("sampling"), SOLVERS[solver][0])
    return sampler(denoiser, torch.from_numpy(start()) * size, sigmas, disable=True, **options).numpy()


def distance(ours: np.ndarray, hers: np.ndarray) -> float:
    return float(np.linalg.norm(ours - hers) / np.linalg.norm(hers))


@pytest.mark.parametrize(("solver", "curve"), CASES)
def test_a_run_equals_hers(solver: str, curve: str) -> None:
    scheduler = make(solver, curve)
    assert len(levels(scheduler)) == STEPS + 1
    hers = run_hers(solver, make(solver, curve))
    other = make(solver, "own" if curve != "own" else "trailing")
    error, mutant = distance(run_ours(scheduler), hers), distance(run_ours(other), hers)
    print(f"{solver} {curve}: {error:.1e}, other levels {mutant:.1e}")
    assert error <= TOLERANCE
    assert mutant > 10 * TOLERANCE


@pytest.mark.parametrize(("solver", "changes"), [
    ("euler_a", {"eta": 0.9}), ("lms", {"order": 3}), ("dpm++2m_sde", {"solver_type": "heun"}), ("dpm++2m_sde", {"eta": 0.9}),
    ("dpm++sde", {"r": 0.4}), ("dpm++sde", {"path_class": IndependentNoise}), ("euler", {"s_churn": 1.0})])
def test_another_option_of_hers_is_seen(solver: str, changes: dict[str, Any]) -> None:
    torch.manual_seed(0)  # of the noise that churn adds
    assert distance(run_ours(make(solver, "own")), run_hers(solver, make(solver, "own"), **changes)) > 10 * TOLERANCE


@pytest.mark.parametrize("solver", ["euler_a", "dpm++2m_sde", "dpm++sde"])
def test_another_seed_is_seen(solver: str) -> None:
    assert distance(run_ours(make(solver, "own"), SEED + 1), run_hers(solver, make(solver, "own"))) > 1e-2


def test_curves_are_hers() -> None:
    """Karras' and the exponential levels between the same ends; another rho is another curve."""
    sampling = oracles.k_diffusion("sampling")
    for curve, hers in (("karras", sampling.get_sigmas_karras), ("exponential", sampling.get_sigmas_exponential)):
        ours = levels(make("euler", curve)).double().numpy()
        np.testing.assert_allclose(ours, hers(STEPS, float(ours[-2]), float(ours[0])).numpy(), rtol=1e-5)
    other = sampling.get_sigmas_karras(STEPS, float(ours[-2]), float(ours[0]), rho=6.0).numpy()
    assert np.abs(levels(make("euler", "karras")).numpy()[1:-1] / other[1:-1] - 1).max() > 1e-2

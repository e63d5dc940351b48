"""Which configurations of the schedulers are compared with diffusers, each with a number of steps or a list of
timesteps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from diffusers.schedulers.scheduling_utils import AysSchedules

NAMES = ("DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
         "EulerAncestralDiscreteScheduler", "HeunDiscreteScheduler", "LMSDiscreteScheduler",
         "DPMSolverMultistepScheduler", "DPMSolverSDEScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler",
         "LCMScheduler")
SPACINGS = ("leading", "linspace", "trailing")
CURVES = ({}, {"use_karras_sigmas": True}, {"use_exponential_sigmas": True})


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


def heun_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction", "sample")):
        for curve in CURVES:
            yield "HeunDiscreteScheduler", options | curve, 5
    yield "HeunDiscreteScheduler", {"clip_sample": True, "clip_sample_range": 0.8}, 6
    yield "HeunDiscreteScheduler", {"timestep_spacing": "leading", "steps_offset": 1}, 1


def lms_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction", "sample")):
        for curve in CURVES:
            yield "LMSDiscreteScheduler", options | curve, 7
    yield "LMSDiscreteScheduler", {"timestep_spacing": "leading", "steps_offset": 1}, 3


def unipc_cases() -> Iterator[tuple]:
    name = "UniPCMultistepScheduler"
    for options in grid(timestep_spacing=SPACINGS, solver_order=(1, 2, 3)):
        for curve in CURVES:
            yield name, options | curve, 8
    # Where the last sigma is 0, diffusers' bh1, its epsilon form and its higher last orders are not finite.
    for options in grid(solver_order=(1, 2, 3), solver_type=("bh1", "bh2"), predict_x0=(True, False),
                        lower_order_final=(True, False), final_sigmas_type=("sigma_min",)):
        yield name, options, 8
    for options in grid(prediction_type=("epsilon", "v_prediction", "sample"), predict_x0=(True, False),
                        final_sigmas_type=("sigma_min",), disable_corrector=([], [0], [1, 2, 5])):
        yield name, options, 7
    yield name, {"use_karras_sigmas": True, "sigma_min": 0.1, "sigma_max": 12.0}, 8
    yield name, {"use_exponential_sigmas": True, "sigma_min": 0.1, "sigma_max": 12.0}, 8
    yield name, {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing", "prediction_type": "v_prediction"}, 18
    yield name, {"timestep_spacing": "leading", "steps_offset": 1, "solver_type": "midpoint"}, 20


def deis_cases() -> Iterator[tuple]:
    name = "DEISMultistepScheduler"
    for options in grid(timestep_spacing=SPACINGS, solver_order=(1, 2, 3)):
        for curve in CURVES:
            yield name, options | curve, 8
    for options in grid(prediction_type=("epsilon", "v_prediction", "sample"), lower_order_final=(True, False), solver_order=(2, 3)):
        yield name, options, 7
    yield name, {"timestep_spacing": "leading", "steps_offset": 1, "algorithm_type": "dpmsolver++", "solver_type": "bh2"}, 20
    yield name, {"solver_order": 3}, 15


def lcm_cases() -> Iterator[tuple]:
    for options in grid(prediction_type=("epsilon", "v_prediction", "sample"), clip_sample=(True, False),
                        original_inference_steps=(50, 20)):
        for steps in (1, 4, 7):
            yield "LCMScheduler", options, steps
    yield "LCMScheduler", {"timestep_scaling": 0.01}, 4
    yield "LCMScheduler", {"original_inference_steps": 50}, 50
    yield "LCMScheduler", {"rescale_betas_zero_snr": True, "prediction_type": "v_prediction"}, 5


def sde_cases() -> Iterator[tuple]:
    for options in grid(timestep_spacing=SPACINGS, prediction_type=("epsilon", "v_prediction")):
        for curve in CURVES:
            yield "DPMSolverSDEScheduler", options | curve, 5
    yield "DPMSolverSDEScheduler", {"timestep_spacing": "leading", "steps_offset": 1}, 1


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


def given_timesteps_cases() -> Iterator[tuple]:
    """"Align your steps" tables, and any other list, for the classes that take one."""
    for name, options in (("DDPMScheduler", {}), ("EulerDiscreteScheduler", {}), ("HeunDiscreteScheduler", {}),
                          ("DPMSolverMultistepScheduler", {}), ("LCMScheduler", {}),
                          ("DPMSolverMultistepScheduler", {"algorithm_type": "sde-dpmsolver++"}),
                          ("EulerDiscreteScheduler", {"timestep_spacing": "leading"}),
                          ("EulerDiscreteScheduler", {"interpolation_type": "log_linear"}),
                          ("DPMSolverMultistepScheduler", {"solver_order": 3, "timestep_spacing": "trailing"})):
        for timesteps in (AysSchedules["StableDiffusionTimesteps"], AysSchedules["StableDiffusionXLTimesteps"],
                          [980, 400, 399, 7], [500]):
            yield name, options, timesteps


def schedule_cases() -> Iterator[tuple]:
    """Each spacing with each curve, where the classes above do not combine them already."""
    for name, algorithm in (("EulerDiscreteScheduler", {}), ("DPMSolverMultistepScheduler", {}),
                            ("DPMSolverMultistepScheduler", {"algorithm_type": "sde-dpmsolver++"})):
        for spacing, curve in itertools.product(SPACINGS, CURVES):
            yield name, algorithm | {"timestep_spacing": spacing} | curve, 9


def beta_cases() -> Iterator[tuple]:
    for name in NAMES:
        yield name, {"beta_schedule": "linear", "beta_start": 0.0001, "beta_end": 0.02}, 5
        yield name, {"beta_schedule": "squaredcos_cap_v2"}, 5
        yield name, {"trained_betas": list(np.linspace(0.001, 0.02, 300)), "num_train_timesteps": 300}, 13
        yield name, {"num_train_timesteps": 600, "steps_offset": 1}, 33
        yield name, {"timestep_spacing": "trailing"}, 23


CASES = [case for cases in (ddpm_cases, ddim_cases, pndm_cases, euler_cases, euler_ancestral_cases, heun_cases,
                            lms_cases, dpm_solver_cases, sde_cases, unipc_cases, deis_cases, lcm_cases,
                            schedule_cases, given_timesteps_cases, beta_cases) for case in cases()]

"""diffusers' scheduler classes, also the two that are not exported where scipy and torchsde are not installed: those packages are the
oracles' (oracles.py). DPMSolverSDEScheduler takes its noise from torchsde, for which the tests inject the same random draws as on our
side (see BrownianPath)."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import diffusers
import numpy as np
import oracles
import torch
from diffusers.utils.torch_utils import randn_tensor


class BrownianPath:
    """Brownian motion in sigma, drawn as the scheduler walks down it: what torchsde's tree stands for, with the draws
    of a generator. Called as diffusers calls its noise sampler, for increments of the variance 1."""

    def __init__(self, generator: Any, shape: torch.Size) -> None:
        self.generator, self.shape = generator, shape
        self.sigmas: list[float] = []
        self.values: list[torch.Tensor] = []

    def __call__(self, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        if not self.sigmas:
            self.sigmas, self.values = [float(start)], [torch.zeros(self.shape)]
        known = int(np.argmin([abs(sigma - float(start)) for sigma in self.sigmas]))
        assert abs(self.sigmas[known] - float(start)) < 1e-5 * float(start), "an increment from a place not visited"
        draw = randn_tensor(self.shape, generator=self.generator)
        self.values.append(self.values[-1] + (self.sigmas[-1] - float(end)) ** 0.5 * draw)
        self.sigmas.append(float(end))
        return (self.values[-1] - self.values[known]) / (self.sigmas[known] - float(end)) ** 0.5


class IndependentNoise(BrownianPath):
    """The mutant: each increment is new, also where two overlap."""

    def __call__(self, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        return randn_tensor(self.shape, generator=self.generator)


def sde_scheduler_class() -> Any:
    """DPMSolverSDEScheduler with a step() that takes a generator, as the other classes' does."""
    oracles.load("torchsde")
    base = importlib.import_module("diffusers.schedulers.scheduling_dpmsolver_sde").DPMSolverSDEScheduler

    class DPMSolverSDEScheduler(base):
        path_class = BrownianPath

        def step(self, model_output: torch.Tensor, timestep: Any, sample: torch.Tensor, generator: Any = None,
                 return_dict: bool = True) -> Any:
            if self.noise_sampler is None:
                self.noise_sampler = self.path_class(generator, sample.shape)
            return super().step(model_output, timestep, sample, return_dict)

    return DPMSolverSDEScheduler


@functools.cache
def scheduler_class(name: str) -> Any:
    """The class of diffusers with that name."""
    if name == "DPMSolverSDEScheduler":
        return sde_scheduler_class()
    if name != "LMSDiscreteScheduler":
        return getattr(diffusers, name)
    module = importlib.import_module("diffusers.schedulers.scheduling_lms_discrete")
    if not hasattr(module, "integrate"):
        module.integrate = oracles.load("scipy.integrate")
    return module.LMSDiscreteScheduler

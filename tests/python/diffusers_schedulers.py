"""diffusers' scheduler classes, also the two that are not exported where scipy and torchsde are not installed.

Neither package takes part in what is compared: LMSDiscreteScheduler integrates cubic polynomials with scipy, which a
Gauss-Legendre rule does exactly, and DPMSolverSDEScheduler takes its noise from torchsde, for which the tests inject
the same random draws as on our side (see BrownianPath)."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import diffusers
import numpy as np
import torch
from diffusers.utils.torch_utils import randn_tensor


def integral_of_polynomial(function: Callable[[float], Any], start: Any, end: Any, **_: Any) -> tuple[float, float]:
    """scipy.integrate.quad for polynomials of a degree below 10."""
    points, weights = np.polynomial.legendre.leggauss(5)
    middle, half = (float(start) + float(end)) / 2, (float(end) - float(start)) / 2
    return sum(half * weight * float(function(middle + half * point)) for point, weight in zip(points, weights)), 0.0


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
    with_stand_in = "torchsde" not in sys.modules and importlib.util.find_spec("torchsde") is None
    if with_stand_in:
        sys.modules["torchsde"] = ModuleType("torchsde")
    try:
        base = importlib.import_module("diffusers.schedulers.scheduling_dpmsolver_sde").DPMSolverSDEScheduler
    finally:
        if with_stand_in:
            del sys.modules["torchsde"]

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
        module.integrate = SimpleNamespace(quad=integral_of_polynomial)
    return module.LMSDiscreteScheduler

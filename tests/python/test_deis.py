"""DEIS: what diffusers' own float32 leaves of it."""

from __future__ import annotations

from typing import Any

import diffusers
from test_schedulers import STABLE_DIFFUSION, TOLERANCE, distance, run_ours, run_theirs

import sdtune


class InFloat64(diffusers.DEISMultistepScheduler):
    """diffusers' class with its coefficients, which come from the sigmas, in float64."""

    def set_timesteps(self, *values: Any, **keywords: Any) -> None:
        super().set_timesteps(*values, **keywords)
        self.sigmas = self.sigmas.double()


def test_coefficients_of_the_third_order_are_summed_in_float64() -> None:
    """They are small differences of large numbers: of 50 steps diffusers' float32 gives another sample."""
    options = {**STABLE_DIFFUSION, "solver_order": 3}
    exact, rounded = run_theirs(InFloat64(**options), 50), run_theirs(diffusers.DEISMultistepScheduler(**options), 50)
    assert distance(run_ours(sdtune.DEISMultistepScheduler(**options), 50), exact) <= TOLERANCE
    assert distance(rounded, exact) > TOLERANCE

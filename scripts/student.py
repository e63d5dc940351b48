"""The 95 % interval of a mean of a few subjects, by Student's t: scripts/eval_table.py and eval_best_table.py have their intervals from here."""

from __future__ import annotations

import math

# Two-sided 95 % quantiles by degrees of freedom, 1 to 30.
QUANTILES = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
             2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def quantile(freedom: int) -> float:
    """Beyond the table its last value, which makes intervals a little too wide and never too narrow."""
    return QUANTILES[min(freedom, len(QUANTILES)) - 1]


def mean_and_half(values: list[float]) -> tuple[float, float]:
    """The mean, and half the width of its interval: NaN for a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, quantile(len(values) - 1) * math.sqrt(variance / len(values))

"""Candidates are timed one after another, and those that cannot be the fastest are ended: on a processor without instructions for bfloat16
LibTorch's own takes a hundred times as long as float32."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

PATIENCE = 1.5  # times what the first candidate, float32, took with its loading: what takes longer is not the fastest

# Candidates that one call finds so close are timed twice more. On a virtual machine with neighbours equal calls differ by a fifth: one alone
# took diffusers' slower layout, or its slower number format, for its best.
CLOSE = 1.4

Key = TypeVar("Key", bound=Hashable)
_limits: list[float | None] = [None]


def time_limit() -> float | None:
    """Seconds after which a process that is started now is to be ended, with subprocess.TimeoutExpired."""
    return _limits[-1]


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    _limits.append(seconds)
    try:
        yield
    finally:
        _limits.pop()


def time_each(calls: dict[Key, Callable[[], float]]) -> tuple[dict[Key, float], dict[Key, float]]:
    """What each call returns, of those that are close the median of three that take turns; and of those that were ended, after how many
    seconds."""
    times, ended, most = {}, {}, None
    for key, call in calls.items():
        started = time.monotonic()
        try:
            with at_most(most):
                times[key] = call()
        except subprocess.TimeoutExpired:
            ended[key] = round(most, 1)
            continue
        most = most or PATIENCE * (time.monotonic() - started)
    close = [key for key in times if times[key] <= CLOSE * min(times.values())]
    if len(close) > 1:
        rounds = [{key: calls[key]() for key in close} for _ in range(2)]
        times |= {key: statistics.median([times[key], *(each[key] for each in rounds)]) for key in close}
    return times, ended

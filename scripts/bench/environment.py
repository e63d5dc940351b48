"""The environments that diffusers is timed in: glibc's and LibTorch's defaults, and settings of memory that serve every LibTorch process
(docs/portrait_base.md). sdtune keeps freed blocks of tensors by itself (docs/cpu.md) and is timed with the defaults alone."""

from __future__ import annotations

import os
from collections.abc import Callable

from .patience import time_each

PLAIN = "plain"
ENVIRONMENTS: dict[str, dict[str, str]] = {
    PLAIN: {},
    "memory settings": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.trim_threshold=4294967296", "THP_MEM_ALLOC_ENABLE": "1"},
}


def variables_of(name: str) -> dict[str, str]:
    """All variables of a process in this environment: this process's, but settings of memory that it was started with itself."""
    set_by_any = {variable for variables in ENVIRONMENTS.values() for variable in variables}
    inherited = {variable: value for variable, value in os.environ.items() if variable not in set_by_any}
    return {**inherited, **ENVIRONMENTS[name]}


def fastest_environment(call: Callable[[str], float]) -> tuple[str, dict[str, float]]:
    """The environment in which the call, which is given its name, takes the least seconds, and its seconds in each."""
    times, _ = time_each({name: lambda name=name: call(name) for name in ENVIRONMENTS})
    return min(times, key=times.get), {name: round(seconds, 5) for name, seconds in times.items()}

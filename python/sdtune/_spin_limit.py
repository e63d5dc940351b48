"""Bounds how long libgomp's waiting threads spin: imported before `_native`, which loads LibTorch and libgomp with it.

libgomp spins for milliseconds before a waiting thread sleeps, so that two processes that share cores slow each other out of
proportion. It reads its bound, GOMP_SPINCOUNT, once, while it is loaded. The program `sdtune` does the same
(app/spin_limit.cpp).
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

SPIN_COUNT = "3000"
SPIN_COUNT_AMD = "1000"  # app/spin_limit.cpp says why
CPU_INFO = Path("/proc/cpuinfo")
MAPS = Path("/proc/self/maps")


def libgomp_is_loaded() -> bool:
    """Whether this process has mapped libgomp already; False where the system does not tell."""
    try:
        return b"libgomp" in MAPS.read_bytes()  # names of files, in any encoding
    except OSError:
        return False


def spin_count() -> str:
    """The bound for this processor; the general one where the system does not tell whose it is."""
    try:
        return SPIN_COUNT_AMD if b"AuthenticAMD" in CPU_INFO.read_bytes() else SPIN_COUNT
    except OSError:
        return SPIN_COUNT


def bound_spin() -> None:
    """Sets GOMP_SPINCOUNT in the environment. A value of the user's, or OMP_WAIT_POLICY, wins; where another library has
    loaded libgomp already the bound would come too late, and a warning says what to set."""
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        return
    if not libgomp_is_loaded():
        os.environ["GOMP_SPINCOUNT"] = spin_count()
    elif os.environ.get("OMP_NUM_THREADS") != "1":  # a thread alone never waits for another
        warnings.warn("libgomp was loaded before sdtune, so its threads spin while they wait and slow down other programs on "
                      f"the same cores: set GOMP_SPINCOUNT={spin_count()} before Python starts, or import sdtune first",
                      RuntimeWarning, stacklevel=3)

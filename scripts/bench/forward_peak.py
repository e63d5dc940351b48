"""One side's forward pass in a process of its own: prints the most memory that it held, in bytes.

Both sides load the same libraries, and the peak counts from when the weights are there, so that only the pass differs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .forward import diffusers_call, make_inputs, sdtune_call
from .models import MODELS


def reset_peak() -> None:
    """Begins VmHWM anew at what is resident now (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The most that was resident since reset_peak()."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=["sdtune", "diffusers"])
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--unet", type=Path, required=True)
    parser.add_argument("--candidate", default="float32, contiguous", help="diffusers' dtype and memory format")
    options = parser.parse_args()
    model = MODELS[options.model].with_overrides(options.batch, None)
    inputs = make_inputs(model)
    if options.side == "sdtune":
        call, _ = sdtune_call(options.unet, inputs)
    else:
        call = diffusers_call(options.unet, inputs, options.candidate)
    reset_peak()
    for _ in range(3):
        call()
    print(peak_bytes())


if __name__ == "__main__":
    main()

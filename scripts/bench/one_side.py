"""One side's calls in a process of their own: prints their seconds and peak memory as JSON, and keeps the result where it is asked to.

The peak counts from when the weights are there, so that both sides' libraries are left out and only the calls differ.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from .works import Candidate, load


def reset_peak() -> None:
    """Begins VmHWM anew at what is resident now (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The most that was resident since reset_peak()."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work")
    parser.add_argument("side", choices=["ours", "theirs"])
    parser.add_argument("--candidate", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    work = load(options.work, options.model, options.batch, options.folder)
    call = getattr(work, options.side)(Candidate.parse(options.candidate))
    loaded = time.perf_counter() - started
    reset_peak()
    seconds, results = [], []
    with torch.inference_mode():
        for _ in range(options.calls):
            started = time.perf_counter()
            results.append(call())
            seconds.append(time.perf_counter() - started)
            if not options.keep:
                results.clear()
    if options.keep:
        np.save(options.keep, np.stack([np.asarray(result, np.float32) for result in results]))
    print(json.dumps({"load_s": loaded, "calls_s": seconds, "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()

"""The peak memory of a process."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

POLL_SECONDS = 0.02


def high_water_bytes(pid: int) -> int:
    """Resident memory of the process at its highest so far; 0 when it is gone. (getrusage's figure of a child begins with the
    memory that this Python had at the fork.)"""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def watch_peak(child: subprocess.Popen, most_seconds: float | None = None) -> int:
    """Waits until the process has ended, and returns its peak in bytes; ends it after most_seconds with subprocess.TimeoutExpired."""
    peak, started = 0, time.monotonic()
    while child.poll() is None:
        if most_seconds is not None and time.monotonic() - started > most_seconds:
            child.kill()
            child.wait()
            raise subprocess.TimeoutExpired(child.args, most_seconds)
        peak = max(peak, high_water_bytes(child.pid))
        time.sleep(POLL_SECONDS)
    return peak

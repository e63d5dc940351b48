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


def begin_anew(pid: int) -> None:
    """VmHWM of the process begins at what is resident now (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def watch_peak(child: subprocess.Popen, most_seconds: float | None = None, since: Path | None = None) -> int:
    """Waits until the process has ended, and returns its peak in bytes, from its start or, with `since`, from when this file has content;
    ends it after most_seconds with subprocess.TimeoutExpired."""
    peak, started, awaited = 0, time.monotonic(), since
    while child.poll() is None:
        if most_seconds is not None and time.monotonic() - started > most_seconds:
            child.kill()
            child.wait()
            raise subprocess.TimeoutExpired(child.args, most_seconds)
        if awaited is not None and has_content(awaited):
            begin_anew(child.pid)
            peak, awaited = 0, None
        peak = max(peak, high_water_bytes(child.pid))
        time.sleep(POLL_SECONDS)
    if awaited is not None and child.returncode == 0:
        raise RuntimeError(f"{awaited}: had no content while the process ran, so its peak from then on is not known")
    return peak

"""The program `sdtune` of this checkout, as tests run it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What the build just made; SDTUNE_PROGRAM names another one, for example an installed wheel's.
SDTUNE = Path(os.environ.get("SDTUNE_PROGRAM", ROOT / "build" / "app" / "sdtune"))


def run(words: list[str], cwd: Path | None = None, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `sdtune WORDS...` to its end. Bytes of its output that are not UTF-8 are lone surrogates, as in os.fsdecode."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", **environment}
    return subprocess.run([str(SDTUNE), *words], cwd=cwd, env=settings, capture_output=True, encoding="utf-8", errors="surrogateescape",
                          timeout=timeout, check=False)

"""What a measurement must say of the machine it was made on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch

ISA_FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16")


def describe_commit() -> str | None:
    """What is checked out, with -dirty behind it where files differ; None outside a repository."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or None


def describe_machine() -> dict[str, object]:
    """Processor, cores, instruction sets, memory, torch and diffusers versions."""
    import diffusers
    fields = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = fields.get("flags", "").split()
    return {
        "cpu": f"{fields.get('model name')} (family {fields.get('cpu family')}, model {fields.get('model')})",
        "cores": os.cpu_count(), "isa": [flag for flag in ISA_FLAGS if flag in flags],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "torch": torch.__version__, "diffusers": diffusers.__version__, "python": platform.python_version(),
    }

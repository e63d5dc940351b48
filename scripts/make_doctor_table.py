#!/usr/bin/env python3
"""Writes docs/measurements/doctor_stubbed.md: what `sdtune doctor --machine` says of GPUs, drivers and containers of many kinds.

    .venv/bin/python scripts/make_doctor_table.py [--check]      --check: writes nothing; exit 1 where the page says otherwise

Needs a build with SDTUNE_CUDA=ON and a C compiler. tests/gpu/driver_stub.c stands for NVIDIA's driver library, and the recorded GPU
(tests/gpu/recorded) for what LibTorch then finds.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

from driver_stub import StubbedMachine  # noqa: E402

SDTUNE = ROOT / "build" / "app" / "sdtune"
RECORDED = ROOT / "build" / "gpu" / "libsdtune_recorded_gpu.so"
PAGE = ROOT / "docs" / "measurements" / "doctor_stubbed.md"
# Lines of the machine that wrote the page, and of no case.
OWN = ("cpu", "memory", "formats", "disk", "shm", "files", "verbs", "clock", "versions")
HEAD = """# What `sdtune doctor --machine` says

Written by `scripts/make_doctor_table.py` with a stub of NVIDIA's driver library (tests/gpu/driver_stub.c), files in place of PCI's and of
a container's, and the recorded GPU (tests/gpu/recorded) in the place of LibTorch's own. No GPU was there. The lines about processor,
memory, disk, limits and clock are left out.
"""

Case = Callable[[StubbedMachine], dict[str, str]]


# GiB of cards, as their drivers say.
MEMORY = {"NVIDIA T4": 15, "NVIDIA A100": 40, "NVIDIA A10G": 22, "NVIDIA L4": 22, "NVIDIA H100": 80, "NVIDIA B200": 180, "NVIDIA RTX 5090": 32,
          "Tesla V100": 16}


def gpus(text: str, cuda: int = 13000) -> Case:
    """Cards of one size; a driver that is too old lists none to LibTorch."""
    memory = MEMORY[text.split("=")[0]] << 30
    found = text.count("=") if cuda >= 13000 else 0
    return lambda machine: {**machine.environment(text, cuda), "SDTUNE_RECORDED_GPUS": str(found), "SDTUNE_STUB_MEMORY": str(memory)}


def on_bus(*files: Callable[[StubbedMachine], object]) -> Case:
    """A GPU on the bus without a driver library, after what `files` add."""
    def environment(machine: StubbedMachine) -> dict[str, str]:
        for add in files:
            add(machine)
        return machine.without_driver()
    return environment


CASES: dict[str, Case] = {
    "two GPUs": gpus("NVIDIA L4=8.9;NVIDIA L4=8.9"),
    **{f"compute capability {capability}: {name}": gpus(f"{name}={capability}") for name, capability in (
        ("NVIDIA T4", "7.5"), ("NVIDIA A100", "8.0"), ("NVIDIA A10G", "8.6"), ("NVIDIA L4", "8.9"), ("NVIDIA H100", "9.0"), ("NVIDIA B200", "10.0"),
        ("NVIDIA RTX 5090", "12.0"))},
    "a GPU that is too old": gpus("Tesla V100=7.0"),
    "one that is too old and one that is not": gpus("Tesla V100=7.0;NVIDIA L4=8.9"),
    "a driver that is too old": gpus("NVIDIA H100=9.0", cuda=12040),
    "a driver that is newer": gpus("NVIDIA H100=9.0", cuda=13010),
    "a driver that fails": lambda machine: machine.environment("NVIDIA H100=9.0", init=802),
    "a driver and no GPU": lambda machine: machine.environment(""),
    "all GPUs hidden": lambda machine: {**machine.environment(""), "CUDA_VISIBLE_DEVICES": ""},
    "neither GPU nor driver": lambda machine: machine.without_driver(),
    "a GPU and no driver": on_bus(lambda machine: machine.add_hardware()),
    "a container without its runtime": on_bus(lambda machine: machine.add_hardware(), lambda machine: machine.add_container()),
    "a container that shows the host's kernel module": on_bus(lambda machine: machine.add_kernel_module("580.82.07")),
    "our kernels missing": lambda machine: {**machine.environment("NVIDIA L4=8.9"), "SDTUNE_CUDA_LIBRARY": "/nowhere/libsdtune_cuda.so"},
}


def said(case: Case, folder: Path) -> str:
    """The lines of a case, and the exit code."""
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment |= {"SDTUNE_CUDA_LIBRARY": str(RECORDED), "SDTUNE_RECORDED_GPUS": "0", "OMP_NUM_THREADS": "1", **case(StubbedMachine(folder))}
    done = subprocess.run([str(SDTUNE), "doctor", "--machine", "--output", str(folder)], env=environment, capture_output=True, text=True, check=False)
    kept: list[str] = []
    keeps = True
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            keeps = line.split()[1] not in OWN
        if keeps:
            kept.append(line)
    text = re.sub(r"/\S+/libcuda", ".../libcuda", "\n".join(kept))
    return f"{text}\n(exit code {done.returncode})"


def page() -> str:
    text = HEAD
    with tempfile.TemporaryDirectory() as name:
        for index, (title, case) in enumerate(CASES.items()):
            text += f"\n## {title}\n```\n{said(case, Path(name) / str(index))}\n```\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the page; write nothing")
    options = parser.parse_args()
    if not RECORDED.is_file():
        print("make_doctor_table: build/gpu/libsdtune_recorded_gpu.so is missing: build with SDTUNE_CUDA=ON", file=sys.stderr)
        return 2
    text = page()
    if options.check:
        good = PAGE.is_file() and PAGE.read_text() == text
        print("doctor table: ok" if good else f"doctor table: {PAGE.relative_to(ROOT)} differs; run scripts/make_doctor_table.py")
        return 0 if good else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

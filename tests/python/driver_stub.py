"""A machine with other GPUs: tests/gpu/driver_stub.c in place of NVIDIA's driver library, and files in place of PCI's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from program import ROOT


class StubbedMachine:
    """Environment variables with which sdtune sees the GPUs, driver and hardware that are given."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.library = folder / "lib"
        self.library.mkdir()
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(self.library / "libcuda.so.1"),
                        str(ROOT / "tests" / "gpu" / "driver_stub.c")], check=True)

    def environment(self, gpus: str = "", cuda: int = 13000, init: int | None = None) -> dict[str, str]:
        """gpus: "NAME=CAPABILITY;..."; cuda: what the driver supports; init: what cuInit returns."""
        environment = {"LD_LIBRARY_PATH": str(self.library), "SDTUNE_STUB_GPUS": gpus, "SDTUNE_STUB_CUDA": str(cuda),
                       "SDTUNE_SYSTEM_ROOT": str(self.root), "CUDA_VISIBLE_DEVICES": "0,1"}
        return environment if init is None else {**environment, "SDTUNE_STUB_INIT": str(init)}

    def without_driver(self) -> dict[str, str]:
        """No driver library; PCI and container files as the methods below put them."""
        return {"SDTUNE_SYSTEM_ROOT": str(self.root)}

    def add_hardware(self, device: str = "0x2684") -> None:
        """An NVIDIA GPU on the PCI bus."""
        slot = self.root / "sys" / "bus" / "pci" / "devices" / "0000:01:00.0"
        slot.mkdir(parents=True)
        for name, value in {"vendor": "0x10de", "device": device, "class": "0x030000"}.items():
            (slot / name).write_text(value + "\n")

    def add_container(self) -> None:
        """The file by which docker marks a container."""
        (self.root / ".dockerenv").write_text("")

    def add_kernel_module(self, release: str, name: str = "x86_64 Kernel Module") -> None:
        """The driver's part in the kernel, which a container shows whether it may use the GPU or not; the open one has another name."""
        folder = self.root / "proc" / "driver" / "nvidia"
        folder.mkdir(parents=True)
        (folder / "version").write_text(f"NVRM version: NVIDIA UNIX {name}  {release}  Release Build\n")

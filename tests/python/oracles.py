"""Programs that tests compare with and that only they see: scripts/setup.sh --tests installs requirements/oracles.txt into
.venv/oracles.

They lie outside of site-packages because diffusers, transformers and peft behave otherwise where they find scipy or bitsandbytes.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

FOLDER = Path(sys.prefix) / "oracles"


def load(name: str) -> Any:
    """The module `name` of the oracles or of site-packages."""
    assert FOLDER.is_dir(), f"{FOLDER} is missing: scripts/setup.sh --tests makes it"
    sys.path.append(str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


def bitsandbytes() -> Any:
    """bitsandbytes with its kernels in torch, which it takes where its library does not load. The quantizer of its library for CPUs has a
    coarse table and stores numbers below 3e-5 of a block's largest as a neighbour; on a GPU and in torch it takes the nearest code,
    and so do we."""
    refused = OSError("kernels in torch, not compiled")
    with mock.patch.object(ctypes.cdll, "LoadLibrary", side_effect=refused), mock.patch("torch.compile", side_effect=refused):
        return load("bitsandbytes")


def k_diffusion(part: str) -> Any:
    """k_diffusion.sampling or k_diffusion.external. The package's own __init__ would import what its training and its measures need
    (scikit-image, clean-fid, CLIP, kornia, wandb)."""
    if "k_diffusion" not in sys.modules:
        package = ModuleType("k_diffusion")
        package.__path__ = [str(FOLDER / "k_diffusion")]
        sys.modules["k_diffusion"] = package
    return load(f"k_diffusion.{part}")


def ldm(part: str) -> Any:
    """A module of Stability's ldm. Its UNet asks omegaconf for one class only, to tell a list of YAML from Python's."""
    if "omegaconf.listconfig" not in sys.modules:
        sys.modules["omegaconf"] = ModuleType("omegaconf")
        lists = ModuleType("omegaconf.listconfig")
        lists.ListConfig = tuple
        sys.modules["omegaconf.listconfig"] = lists
    return load(f"ldm.{part}")

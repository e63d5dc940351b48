"""DreamBooth fine-tuning of Stable Diffusion, and sampling from it, in C++ on LibTorch.

Arrays are NumPy's; names are diffusers'. PyTorch's libraries are used, its Python package is never imported.
"""

from __future__ import annotations

from . import _native
from ._native import *  # noqa: F401,F403
from ._native import __version__

__all__ = [name for name in vars(_native) if not name.startswith("_")]

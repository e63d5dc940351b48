"""DreamBooth fine-tuning of Stable Diffusion, and sampling from it, in C++ on LibTorch.

Arrays are NumPy's; names are diffusers'. PyTorch's libraries are used, its Python package is never imported.
"""

from __future__ import annotations

from . import _libtorch, _spin_limit

_spin_limit.bound_spin()
_libtorch.load()

try:
    from . import _native
except ImportError as error:
    raise ImportError(_libtorch.explained(error), name=error.name, path=error.path) from error

from ._signatures import add_python_side, add_signatures  # noqa: E402

add_python_side()
add_signatures()

from ._native import *  # noqa: E402,F401,F403
from ._native import __version__ as __version__, evaluate as eval  # noqa: E402,F401
from . import types as types  # noqa: E402

__all__ = [name for name in vars(_native) if not name.startswith("_")]

"""DreamBooth fine-tuning of Stable Diffusion, and sampling from it: the names of _native, and its version."""

from . import types as types
from ._native import *  # noqa: F403
from ._native import __version__ as __version__

eval = evaluate  # noqa: F405

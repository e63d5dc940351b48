#!/usr/bin/env python3
"""Writes the public names of the importable sdtune: of the module, and of each of its classes.

    PYTHONPATH=OLD_BUILD/python .venv/bin/python tests/compatibility/write_python_names.py FILE.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import sdtune


def public(thing: object) -> list[str]:
    """What a user may name."""
    return sorted(name for name in dir(thing) if not name.startswith("_"))


names = {name: public(getattr(sdtune, name)) if isinstance(getattr(sdtune, name), type) else [] for name in public(sdtune)}
Path(sys.argv[1]).write_text(json.dumps(names, indent=1) + "\n")

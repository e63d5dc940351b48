#!/usr/bin/env python3
"""Writes the options of TrainConfig into python/sdtune/_native.pyi. Run it after adding an option.

    .venv/bin/python scripts/make_config_stub.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

import sdtune

STUB = Path(__file__).resolve().parent.parent / "python/sdtune/_native.pyi"
LAST_METHOD = "    def to_yaml(self) -> str: ...\n"
TYPES = {"int": "int", "float": "float", "bool": "bool", "string": "str", "list of strings": "list[str]"}


def stub_text() -> str:
    """The stub as it should be: everything up to the last method of TrainConfig, then an attribute an option."""
    text = STUB.read_text()
    head = text[: text.index(LAST_METHOD) + len(LAST_METHOD)]
    for option in sdtune.TrainConfig.options():
        head += f"    {option['name']}: {TYPES[option['type']]}{' | None' if option['optional'] else ''}\n"
    return head


def main() -> int:
    wanted = stub_text()
    if "--check" in sys.argv[1:]:
        return 0 if STUB.read_text() == wanted else 1
    STUB.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())

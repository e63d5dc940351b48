#!/usr/bin/env python3
"""Writes the options of TrainConfig into python/sdtune/_native.pyi. Run it after adding an option.

    .venv/bin/python scripts/make_config_stub.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import sdtune

STUB = Path(__file__).resolve().parent.parent / "python/sdtune/_native.pyi"
CLASS = "class TrainConfig:\n"
LAST_METHOD = "    def to_yaml(self) -> str: ...\n"
TYPES = {"int": "int", "float": "float", "bool": "bool", "string": "str", "list of strings": "list[str]"}


def annotation(option: dict) -> str:
    """name: type, as the stub has it."""
    return f"{option['name']}: {TYPES[option['type']]}{' | None' if option['optional'] else ''}"


def stub_text() -> str:
    """The stub as it should be: TrainConfig's __init__ takes every option, and it has an attribute for each."""
    text = STUB.read_text()
    before, config = text[: text.index(CLASS)], text[text.index(CLASS):text.index(LAST_METHOD) + len(LAST_METHOD)]
    options = [annotation(option) for option in sdtune.TrainConfig.options()]
    keywords = "".join(f"        {option} = ...,\n" for option in options)
    signature = f"    def __init__(self, *,\n{keywords}    ) -> None: ...\n"
    config = re.sub(r"    def __init__\(.*?\) -> None: \.\.\.\n", lambda _: signature, config, count=1, flags=re.DOTALL)
    return before + config + "".join(f"    {option}\n" for option in options)


def main() -> int:
    wanted = stub_text()
    if "--check" in sys.argv[1:]:
        return 0 if STUB.read_text() == wanted else 1
    STUB.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())

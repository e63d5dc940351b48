#!/usr/bin/env python3
"""Writes docs/reference.md and configs/train.schema.json from the options that the program declares. --check only compares (exit 1
when one of them is stale).

    .venv/bin/python scripts/make_reference.py [--check] [--program build/app/sdtune]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The command that prints it -> the file.
FILES = {"reference": ROOT / "docs" / "reference.md", "schema": ROOT / "configs" / "train.schema.json"}


def text_of(program: Path, command: str) -> str:
    """What the program says of itself."""
    return subprocess.run([str(program), command], check=True, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "app" / "sdtune")
    options = parser.parse_args()
    stale = 0
    for command, file in FILES.items():
        text = text_of(options.program, command)
        if options.check:
            current = file.read_text() if file.is_file() else ""
            if text != current:
                print(f"{file.relative_to(ROOT)} is stale: run scripts/make_reference.py", file=sys.stderr)
                stale = 1
        else:
            file.write_text(text)
            print(file.relative_to(ROOT))
    return stale


if __name__ == "__main__":
    sys.exit(main())

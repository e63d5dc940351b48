#!/usr/bin/env python3
"""Writes docs/reference.md from the options that the program declares. --check only compares (exit 1 when it is stale).

    .venv/bin/python scripts/make_reference.py [--check] [--program build/app/sdtune]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference.md"


def reference_text(program: Path) -> str:
    """What the program says of itself."""
    return subprocess.run([str(program), "reference"], check=True, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "app" / "sdtune")
    options = parser.parse_args()
    text = reference_text(options.program)
    current = REFERENCE.read_text() if REFERENCE.is_file() else ""
    if options.check:
        if text != current:
            print("docs/reference.md is stale: run scripts/make_reference.py", file=sys.stderr)
        return 0 if text == current else 1
    REFERENCE.write_text(text)
    print(REFERENCE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

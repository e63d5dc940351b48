#!/usr/bin/env python3
"""Prints the C++ tests that need no LibTorch although their folder links it, and the sources that they need: for scripts/sanitize.sh.

A line a file, "FOLDER;PATH". Tests of folders that hold no LibTorch at all are programs of their own (tests/CMakeLists.txt).
A test needs what it includes and, of each header of ours, the source of the same name; found anew at each configuration, so that
no list of them is kept.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_layers import INCLUDE, NO_TORCH, ROOT

LIBTORCH = re.compile(r"(torch|ATen|c10|caffe2)/")


def needed_files(test: Path) -> set[Path] | None:
    """Every file of ours that the test is made of; None where one of them includes LibTorch."""
    needed: set[Path] = set()
    to_read = [test]
    while to_read:
        path = to_read.pop()
        if path in needed:
            continue
        needed.add(path)
        for mark, target in INCLUDE.findall((ROOT / path).read_text()):
            if mark == "<" and LIBTORCH.match(target):
                return None
            if mark == '"':
                to_read += [found for found in (Path(target), Path(target).with_suffix(".cpp")) if (ROOT / found).is_file()]
    return needed


def main() -> int:
    files: set[Path] = set()
    for path in (ROOT / "tests").rglob("*_test.cpp"):
        test = path.relative_to(ROOT)
        if test.parent.relative_to("tests").as_posix() not in NO_TORCH:
            files |= needed_files(test) or set()
    sources = sorted(path for path in files if path.suffix == ".cpp" and path.parent.as_posix() not in NO_TORCH)
    print("\n".join(f"{path.parent.as_posix()};{path.as_posix()}" for path in sources))
    return 0 if sources else 1


if __name__ == "__main__":
    sys.exit(main())

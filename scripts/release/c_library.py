#!/usr/bin/env python3
"""Says which C library the binaries of a wheel need: the highest GLIBC and GLIBCXX version of the symbols that they ask for.

    scripts/release/c_library.py WHEEL [--most 2.35]

Exit code 1 where a binary needs a newer glibc than --most.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

Version = tuple[int, ...]


def needed_versions(binary: Path) -> dict[str, Version]:
    """"GLIBC" and "GLIBCXX" -> the highest version that its undefined symbols name."""
    text = subprocess.run(["readelf", "--version-info", "--wide", str(binary)], capture_output=True, text=True, check=True).stdout
    needed: dict[str, Version] = {}
    for name, version in re.findall(r"Name: (GLIBC|GLIBCXX)_([0-9.]+)", text):
        numbers = tuple(int(part) for part in version.split("."))
        needed[name] = max(needed.get(name, ()), numbers)
    return needed


def binaries_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF")


def text_of(version: Version) -> str:
    return ".".join(map(str, version))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--most")
    options = parser.parse_args()
    highest: dict[str, tuple[Version, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(options.wheel) as archive:
            archive.extractall(folder)
        for binary in binaries_of(Path(folder)):
            for name, version in needed_versions(binary).items():
                highest[name] = max(highest.get(name, ((), "")), (version, binary.name))
    for name, (version, binary) in sorted(highest.items()):
        print(f"{options.wheel.name}: needs {name} {text_of(version)} ({binary})")
    if options.most and highest["GLIBC"][0] > tuple(int(part) for part in options.most.split(".")):
        sys.exit(1)


if __name__ == "__main__":
    main()

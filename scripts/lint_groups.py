#!/usr/bin/env python3
"""Prints the groups of sources that scripts/lint.sh gives to clang-tidy, one a line: those that hold a LibTorch-free source,
and those that hold a changed one.

    scripts/lint_groups.py BUILD_FOLDER --free          with the sources of folders that hold no LibTorch
    scripts/lint_groups.py BUILD_FOLDER --since COMMIT  with what changed since that commit, files that are not committed included
    scripts/lint_groups.py BUILD_FOLDER                 every group

A group is what the build compiles at once (CMake's unity build): clang-tidy reads LibTorch's headers once for up to sixteen sources.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

from check_layers import LAYERS, NO_TORCH, ROOT

INCLUDED = re.compile(r'^#include "(.+\.cpp)"$', re.MULTILINE)


def sources_of(group: Path) -> set[str]:
    """The sources of a group, relative to the root; a source that is compiled alone is its own group."""
    paths = [Path(path) for path in INCLUDED.findall(group.read_text())] if group.parent.name == "Unity" else [group]
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT)}


def changed_since(commit: str) -> set[str]:
    """Files that git shows as changed since the commit, new ones included."""
    commands = (["git", "diff", "--name-only", commit], ["git", "ls-files", "--others", "--exclude-standard"])
    return {line for command in commands
            for line in subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--free", action="store_true")
    parser.add_argument("--since", metavar="COMMIT")
    options = parser.parse_args()
    changed = changed_since(options.since) if options.since else set()
    groups = {entry["file"]: {path for path in sources_of(Path(entry["file"])) if path.split("/")[0] in LAYERS}
              for entry in json.loads((options.build / "compile_commands.json").read_text())}
    if not any(groups.values()):  # else nothing would be read, and lint.sh would find nothing
        raise SystemExit(f"lint_groups: {options.build}/compile_commands.json names no source of {ROOT}; is it reached by a symbolic link?")
    for file, sources in groups.items():
        is_free = any(Path(path).parent.as_posix() in NO_TORCH for path in sources)
        is_wanted = (options.free and is_free) or bool(sources & changed) or not (options.free or options.since)
        if sources and is_wanted:
            print(file)


if __name__ == "__main__":
    main()

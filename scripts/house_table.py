#!/usr/bin/env python3
"""Prints what the house is made of, a column a commit: files, lines, rooms, cycles.

    scripts/house_table.py [COMMIT...]      default: 68da9cb and the working tree; "." is the working tree
    scripts/house_table.py --duplicates     the blocks behind "same lines" in the working tree, with their places

Counted are the layers model, train, app and python. A room is a folder; a header and its source count as one. Cycles are groups of
rooms that include each other, in the code and not in a table. "Same lines" are blocks of six lines and more that stand in two places.
A header without a source of its own is one beside which there is no .cpp or .cu of its name. scripts/walks.py counts the walks.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_layers import CPP, INCLUDE, LAYERS, MAX_FUNCTION_LINES, cpp_functions, cycles, tracked_files  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BLOCK = 6


def files_of(commit: str, folder: Path) -> dict[Path, str]:
    """Path -> text of each text file of a commit, which is unpacked into `folder`; "." is the working tree."""
    if commit == ".":
        root, paths = ROOT, tracked_files()
    else:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as unpacked:
            unpacked.extractall(folder, filter="data")
        root, paths = folder, [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    texts = {}
    for path in paths:
        try:
            texts[path] = (root / path).read_text()
        except UnicodeDecodeError:
            continue
    return texts


def rooms_of(sources: dict[Path, str]) -> dict[str, set[str]]:
    """Room -> its sources."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for path in sources:
        rooms[path.parent.as_posix()].add(path.stem)
    return rooms


def graph_of(sources: dict[Path, str]) -> dict[str, set[str]]:
    """Room -> the rooms that it includes."""
    graph: dict[str, set[str]] = defaultdict(set)
    for path, text in sources.items():
        room = path.parent.as_posix()
        graph[room] |= {Path(target).parent.as_posix() for mark, target in INCLUDE.findall(text) if mark == '"'} - {room}
    return graph


def is_alone(header: Path, sources: dict[Path, str]) -> bool:
    """Whether no source has the header's name."""
    return not any(header.with_suffix(suffix) in sources for suffix in CPP if suffix != ".h")


Line = tuple[int, str]  # number in the file, text without spare white space


def kept_lines(text: str) -> list[Line]:
    """The lines that say something: without brackets alone, preprocessor lines and white space."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [(number, line) for number, line in enumerate(lines, 1) if re.search(r"\w{2}", line) and not line.startswith("#")]


def same_blocks(sources: dict[Path, str]) -> list[tuple[tuple[Path, int], ...]]:
    """The places (file, first kept line) of each block of BLOCK kept lines that stands in more than one."""
    places: dict[bytes, list[tuple[Path, int]]] = defaultdict(list)
    for path, text in sources.items():
        kept = kept_lines(text)
        for index in range(len(kept) - BLOCK + 1):
            block = "\n".join(line for _, line in kept[index:index + BLOCK])
            places[hashlib.sha256(block.encode()).digest()].append((path, kept[index][0]))
    return [tuple(found) for found in places.values() if len(found) > 1]


def same_lines(sources: dict[Path, str]) -> int:
    """Lines that stand in a block of BLOCK lines and more which another place has too, white space and includes aside."""
    return len({(path, first + offset) for found in same_blocks(sources) for path, first in found for offset in range(BLOCK)})


def duplicates(sources: dict[Path, str]) -> list[str]:
    """Each duplicate once, at its whole length: its places, and its text below them."""
    lines = {path: dict(kept_lines(text)) for path, text in sources.items()}
    printed: set[tuple[Path, int]] = set()
    found = []
    for places in sorted(same_blocks(sources)):
        if all(place in printed for place in places):
            continue
        length = BLOCK
        numbers = [sorted(lines[path]) for path, _ in places]
        starts = [all_numbers.index(first) for all_numbers, (_, first) in zip(numbers, places, strict=True)]

        def texts(offset: int, numbers: list = numbers, starts: list = starts, places: tuple = places) -> set[str | None]:
            ends = [start + offset for start in starts]
            return {lines[path][own[end]] if end < len(own) else None
                    for (path, _), own, end in zip(places, numbers, ends, strict=True)}

        while len(same := texts(length)) == 1 and None not in same:
            length += 1
        for (path, _), own, start in zip(places, numbers, starts, strict=True):
            printed |= {(path, number) for number in own[start:start + length]}
        path, own, start = places[0][0], numbers[0], starts[0]
        found.append("\n".join([", ".join(f"{path}:{first}" for path, first in places),
                                *(f"    {lines[path][number]}" for number in own[start:start + length])]))
    return found


def source_files(texts: dict[Path, str]) -> dict[Path, str]:
    """The C++ and CUDA sources of the layers."""
    return {path: text for path, text in texts.items() if path.suffix in CPP and path.parts[0] in LAYERS}


def figures(texts: dict[Path, str]) -> dict[str, str]:
    """Row -> its figure."""
    sources = source_files(texts)
    headers = {path: text for path, text in sources.items() if path.suffix == ".h"}
    tests = {path: text for path, text in texts.items() if path.parts[0] == "tests" and path.suffix in {*CPP, ".py"}}
    lines = {path: text.count("\n") for path, text in sources.items()}
    short = [path for path in headers if lines[path] < 20]
    rooms, graph = rooms_of(sources), graph_of(sources)
    found = cycles(graph)
    largest = max(rooms, key=lambda room: len(rooms[room]))
    longest = max(lines, key=lambda path: lines[path])
    functions = [length for text in sources.values() for _, length, _ in cpp_functions(text)]
    return {
        "source files": f"{len(sources)}",
        "source lines": f"{sum(lines.values())}",
        "median lines of a file": f"{statistics.median(lines.values()):g}",
        "longest file": f"{lines[longest]} ({longest})",
        "headers below 20 lines": f"{len(short)}",
        "of these without a source of their own": f"{sum(is_alone(path, sources) for path in short)}",
        f"functions above {MAX_FUNCTION_LINES} lines": f"{sum(length > MAX_FUNCTION_LINES for length in functions)} of {len(functions)}",
        "rooms": f"{len(rooms)}",
        "largest room": f"{len(rooms[largest])} sources ({largest})",
        "rooms above 30 sources": f"{sum(len(room) > 30 for room in rooms.values())}",
        "includes between rooms": f"{sum(len(targets) for targets in graph.values())}",
        "cycles": f"{len(found)}" + "".join(f" ({', '.join(group)})" for group in found),
        "same lines": f"{same_lines(sources)}",
        "test files": f"{len(tests)}",
        "test lines": f"{sum(text.count(chr(10)) for text in tests.values())}",
        "pages of documentation": f"{sum(path.suffix == '.md' for path in texts)}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", default=["68da9cb", "."])
    parser.add_argument("--duplicates", action="store_true", help="print the blocks that stand in two places")
    options = parser.parse_args()
    if options.duplicates:
        with tempfile.TemporaryDirectory() as folder:
            print("\n".join(duplicates(source_files(files_of(".", Path(folder))))))
        return
    commits = options.commits
    columns = []
    for commit in commits:
        known = commit == "." or subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"], cwd=ROOT,
                                                capture_output=True, check=False).returncode == 0
        if not known:
            parser.error(f"{commit}: is no commit of this repository")
        with tempfile.TemporaryDirectory() as folder:
            columns.append(figures(files_of(commit, Path(folder))))
    print("| |", " | ".join("working tree" if commit == "." else commit for commit in commits), "|")
    print("|---|" + "---|" * len(commits))
    for row in columns[0]:
        print(f"| {row} |", " | ".join(column[row] for column in columns), "|")


if __name__ == "__main__":
    main()

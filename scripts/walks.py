#!/usr/bin/env python3
"""Follows five walks through the code, and counts the rooms and files that they pass.

    scripts/walks.py [COMMIT...]      default: 68da9cb and the working tree; "." is the working tree
    scripts/walks.py --list .         prints each walk, a function a line

The walks are declared in scripts/walks/: working_tree.txt, and COMMIT.txt for an earlier commit. A line is `FILE:FUNCTION`, indented by
two more than the function that calls it, in the order in which the data pass; `FILE:FUNCTION as TEXT` says how the call is written where
it is not by that name (a factory, operator()). Each line is checked in the sources: FILE defines FUNCTION, and the body of the
caller has the call. A line that is wrong ends the script with exit code 1.

rooms: folders passed. files: files passed. entered: how often a call enters a room from another one. entered again: rooms that a call
enters after they were left upward, by a return. two ways in: rooms that are entered from more than one room, or called from below
while they are still running; where there is none, the rooms of a walk form a tree. twice: functions that the walk passes more than once.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "scripts" / "walks"
WORKING_TREE = "working_tree"
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|\'(?:[^\'\\\n]|\\.)+\'|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
# What may stand between a function's parameters and its body; a constructor's initial values are skipped apart.
BEFORE_BODY = re.compile(r"\s*(?:const|noexcept|override|final|mutable|->\s*[\w:<>*&, ]+?|\s)*(?=[{:;,)])")


@dataclass(frozen=True)
class Stop:
    """A function of a walk."""

    line: int  # of the list
    depth: int
    file: str
    function: str  # perhaps with its class: Trainer::train
    call: str  # as the caller writes it

    @property
    def room(self) -> str:
        return Path(self.file).parent.as_posix()


def read_walks(path: Path) -> dict[str, list[Stop]]:
    """Walk -> its functions."""
    walks: dict[str, list[Stop]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("# "):
            stops = walks.setdefault(line[2:], [])
        elif line.strip():
            place, _, call = line.strip().partition(" as ")
            file, _, function = place.partition(":")
            depth = (len(line) - len(line.lstrip())) // 2
            stops.append(Stop(number, depth, file, function, call or function.rpartition("::")[2] + "("))
    return walks


@cache
def source(commit: str, file: str) -> str | None:
    """A file's text, comments and literals of C++ blanked; None where there is none."""
    if commit == ".":
        path = ROOT / file
        text = path.read_text() if path.is_file() else None
    else:
        done = subprocess.run(["git", "show", f"{commit}:{file}"], cwd=ROOT, capture_output=True, text=True, check=False)
        text = done.stdout if done.returncode == 0 else None
    if text is None or file.endswith(".py"):
        return text
    return COMMENT_OR_TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def closing(text: str, start: int) -> int:
    """The place behind the bracket that closes the one at `start`."""
    pairs = {"(": ")", "{": "}"}
    opened, closed, level = text[start], pairs[text[start]], 0
    for index in range(start, len(text)):
        level += (text[index] == opened) - (text[index] == closed)
        if level == 0:
            return index + 1
    return len(text)


def body_start(text: str, index: int) -> int | None:
    """Where the body begins of the function whose parameters end at `index`; None where it has none."""
    match = BEFORE_BODY.match(text, index)
    if match is None:
        return None
    index = match.end()
    if text[index] == ":" and text[index + 1] != ":":  # initial values: name(..) or name{..}, up to the body
        while text[index] != "{" or re.search(r"\w\s?$", text[:index]):
            index = closing(text, index) if text[index] in "({" else index + 1
            if index >= len(text) or text[index] == ";":
                return None
    return index if text[index] == "{" else None


def cpp_bodies(text: str, name: str) -> list[str]:
    """The bodies of all functions of that name."""
    bodies = []
    for match in re.finditer(rf"(?<![\w.>]){re.escape(name)}\s*(?=\()", text):
        parameters = match.end()
        if name == "operator()":  # its name ends with brackets of its own
            parameters = text.index("(", match.end())
        start = body_start(text, closing(text, parameters))
        if start is not None:
            bodies.append(text[start:closing(text, start)])
    return bodies


def python_bodies(text: str, name: str) -> list[str]:
    return [ast.get_source_segment(text, node) or "" for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef) and node.name == name]


@cache
def bodies_of(commit: str, file: str, function: str) -> list[str]:
    """The bodies of a function; empty where the file does not define it."""
    text = source(commit, file)
    owner, _, name = function.rpartition("::")
    if text is None or (owner and not re.search(rf"\b{re.escape(owner)}\b", text)):
        return []
    return python_bodies(text, name) if file.endswith(".py") else cpp_bodies(text, name)


def callers_of(walk: list[Stop]) -> list[Stop | None]:
    """Of each stop the one that calls it: the nearest earlier one with less indentation."""
    above: list[Stop] = []
    callers: list[Stop | None] = []
    for stop in walk:
        del above[stop.depth:]
        callers.append(above[-1] if above else None)
        above.append(stop)
    return callers


def problems_of(commit: str, walk: list[Stop]) -> list[str]:
    """Stops that are not in the sources as the list says."""
    problems = []
    for stop, caller in zip(walk, callers_of(walk), strict=True):
        if not bodies_of(commit, stop.file, stop.function):
            problems.append(f"line {stop.line}: {stop.file} defines no function {stop.function}")
        if caller is None:
            continue
        call = re.compile(rf"(?<!\w){re.escape(stop.call)}")
        if not any(call.search(body) for body in bodies_of(commit, caller.file, caller.function)):
            problems.append(f'line {stop.line}: {caller.file}:{caller.function} has no "{stop.call}"')
    return problems


@dataclass
class Rooms:
    """How a walk goes through the rooms."""

    entered: int  # calls from one room into another
    again: list[str]  # rooms entered after they were left upward
    two_ways_in: list[str]


def rooms_of(walk: list[Stop]) -> Rooms:
    """Follows the calls from room to room; a call within a room enters none."""
    seen = Rooms(0, [], [])
    entered_from: dict[str, str] = {}
    above: list[Stop] = []
    for stop in walk:
        del above[stop.depth:]
        caller = above[-1].room if above else ""
        if caller != stop.room:
            seen.entered += 1
            is_running = any(one.room == stop.room for one in above)
            if stop.room in entered_from and not is_running and stop.room not in seen.again:
                seen.again.append(stop.room)
            if (is_running or entered_from.setdefault(stop.room, caller) != caller) and stop.room not in seen.two_ways_in:
                seen.two_ways_in.append(stop.room)
        above.append(stop)
    return seen


def describe(walk: list[Stop]) -> str:
    """The cell of the table."""
    seen = rooms_of(walk)
    places = [(stop.file, stop.function) for stop in walk]
    twice = sum(places.count(place) > 1 for place in dict.fromkeys(places))
    return (f"{len({stop.room for stop in walk})} rooms, {len({stop.file for stop in walk})} files, entered {seen.entered}; "
            f"again: {', '.join(seen.again) or 'none'}; two ways in: {', '.join(seen.two_ways_in) or 'none'}; twice: {twice}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", default=["68da9cb", "."])
    parser.add_argument("--list", action="store_true", help="print the functions of each walk")
    given = parser.parse_args()
    columns = {}
    for commit in given.commits:
        path = LISTS / f"{WORKING_TREE if commit == '.' else commit}.txt"
        if not path.is_file():
            parser.error(f"{commit}: has no list of walks (allowed: . and those of {LISTS.relative_to(ROOT)})")
        columns[commit] = read_walks(path)
        problems = [f"{path.name}: {name}: {problem}" for name, walk in columns[commit].items()
                    for problem in problems_of(commit, walk)]
        if problems:
            print("\n".join(problems))
            return 1
    if given.list:
        for walks in columns.values():
            for name, walk in walks.items():
                print(f"{name}: {describe(walk)}", *("  " * (stop.depth + 1) + f"{stop.file}:{stop.function}" for stop in walk), sep="\n")
        return 0
    print("| walk |", " | ".join("working tree" if commit == "." else commit for commit in columns), "|")
    print("|---|" + "---|" * len(columns))
    for name in dict.fromkeys(name for walks in columns.values() for name in walks):
        print(f"| {name} |", " | ".join(describe(walks[name]) if name in walks else "-" for walks in columns.values()), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())

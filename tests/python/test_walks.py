"""The walks that docs/measurements/house.md counts are those of the code, and what is counted is what the names say."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import walks  # noqa: E402

WALKS = walks.read_walks(walks.LISTS / "working_tree.txt")


def stops(*lines: str) -> list[walks.Stop]:
    """A walk of `room/file.cpp:function` lines, indented as in a list."""
    return [walks.Stop(number, (len(line) - len(line.lstrip())) // 2, *line.strip().split(":"), "call(")
            for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize("name", WALKS)
def test_each_function_is_there_and_calls_the_next(name: str) -> None:
    assert not walks.problems_of(".", WALKS[name])


@pytest.mark.parametrize("name", WALKS)
def test_a_wrong_function_or_call_is_found_wherever_it_stands(name: str) -> None:
    for place, stop in enumerate(WALKS[name]):
        for change in ({"function": "nonsense"}, *([{"call": "nonsense("}] if stop.depth else [])):
            wrong = [*WALKS[name]]
            wrong[place] = dataclasses.replace(stop, **change)
            assert walks.problems_of(".", wrong), (stop, change)


def test_generation_passes_twelve_rooms_at_most_with_one_way_into_each() -> None:
    walk = WALKS["prompt -> PNG"]
    assert len({stop.room for stop in walk}) <= 12
    assert not walks.rooms_of(walk).two_ways_in


def test_a_room_entered_again_and_a_second_way_in_are_told_apart() -> None:
    straight = walks.rooms_of(stops("a/x.cpp:one", "  b/x.cpp:two", "    c/x.cpp:three"))
    assert (straight.entered, straight.again, straight.two_ways_in) == (3, [], [])
    again = walks.rooms_of(stops("a/x.cpp:one", "  b/x.cpp:two", "  b/y.cpp:three"))
    assert (again.entered, again.again, again.two_ways_in) == (3, ["b"], [])
    second_way = walks.rooms_of(stops("a/x.cpp:one", "  b/x.cpp:two", "    c/x.cpp:three", "  c/y.cpp:four"))
    assert (second_way.again, second_way.two_ways_in) == (["c"], ["c"])
    from_below = walks.rooms_of(stops("a/x.cpp:one", "  b/x.cpp:two", "    a/y.cpp:three"))
    assert (from_below.again, from_below.two_ways_in) == ([], ["a"])


@pytest.mark.parametrize(("text", "bodies"), [
    ("int twice(int x) {\n  return 2 * x;\n}", 1),
    ("Loop::twice(int x) : a_(x), b_{x} {\n  run();\n}", 1),
    ("int twice(int x);\nint y = twice(2);", 0),
    ("if (twice(2)) {\n  run();\n}", 0),
    ("int twice(int x) {}\nint twice(double x) const {}", 2),
])
def test_a_definition_is_no_declaration_and_no_call(text: str, bodies: int) -> None:
    assert len(walks.cpp_bodies(text, "twice")) == bodies


@pytest.mark.parametrize("script", ["walks.py", "house_table.py"])
def test_help_and_unknown_commits(script: str) -> None:
    def run(word: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(ROOT / "scripts" / script), word], capture_output=True, text=True, check=False)

    assert run("--help").returncode == 0
    unknown = run("nonsense")
    assert unknown.returncode == 2 and "nonsense: " in unknown.stderr

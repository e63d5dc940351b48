#!/usr/bin/env python3
"""Draws the map of the house, docs/pictures/map.svg, from the include table of scripts/check_layers.py.

    scripts/draw_map.py [--check]      --check only compares (exit 1 when the map is stale)

A room is a folder. An arrow a -> b: b includes a; arrows that follow from others are left out. Layers stand above each other, the
lowest at the bottom, and inside a layer a room stands right of all that it includes.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_layers import ALLOWED, NO_TORCH  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "map.svg"
# Bottom to top; a room belongs to the last layer whose name begins its path.
LAYERS = ("model", "train", "train/portrait", "app", "python")
BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN, TITLE = 100, 26, 44, 12, 16, 24
COLOURS = {"model": "#e8f1fb", "train": "#eaf6ea", "train/portrait": "#f3f7e2", "app": "#fdf1e3", "python": "#f6eafa"}


def layer_of(room: str) -> str:
    """The layer that a room stands in."""
    return [layer for layer in LAYERS if room == layer or room.startswith(f"{layer}/")][-1]


def reach(room: str, table: dict[str, set[str]]) -> set[str]:
    """Every room that this one includes, through others too."""
    found: set[str] = set()
    pending = [room]
    while pending:
        for target in table[pending.pop()] - found:
            found.add(target)
            pending.append(target)
    return found


def reduced(table: dict[str, set[str]]) -> dict[str, set[str]]:
    """The table without includes that follow from others (transitive reduction; the table has no cycles)."""
    beyond = {room: set().union(*(reach(target, table) for target in targets)) for room, targets in table.items()}
    return {room: targets - beyond[room] for room, targets in table.items()}


def columns(rooms: list[str], table: dict[str, set[str]]) -> list[list[str]]:
    """The rooms of a layer by column: one right of the rightmost of its own layer that it includes."""
    column: dict[str, int] = {}

    def place(room: str) -> int:
        if room not in column:
            column[room] = 1 + max((place(target) for target in table[room] if target in rooms), default=-1)
        return column[room]

    for room in rooms:
        place(room)
    return [sorted(room for room in rooms if column[room] == index) for index in range(1 + max(column.values()))]


def box(room: str, name: str, x: float, y: float) -> str:
    """A room: a rectangle with its name, with a broken border where it holds no LibTorch."""
    dash = ' stroke-dasharray="4 2"' if room in NO_TORCH else ""
    return (f'<rect x="{x:g}" y="{y:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" fill="white" stroke="#555"{dash}/>'
            f'<text x="{x + BOX_WIDTH / 2:g}" y="{y + 17:g}" text-anchor="middle">{escape(name)}</text>')


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """From the right side of one room to the left side of another."""
    x0, y0, x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT / 2, end[0], end[1] + BOX_HEIGHT / 2
    bend = max(18.0, (x1 - x0) / 2)
    return (f'<path d="M{x0:g} {y0:g} C{x0 + bend:g} {y0:g} {x1 - bend:g} {y1:g} {x1:g} {y1:g}" fill="none" stroke="#888" '
            'marker-end="url(#head)"/>')


def layer_svg(layer: str, top: float, width: float, table: dict[str, set[str]]) -> tuple[list[str], float]:
    """The shapes of a layer whose upper edge is at `top`, and its height."""
    rooms = [room for room in table if layer_of(room) == layer]
    grid = columns(rooms, table)
    tallest = max(len(column) for column in grid)
    height = TITLE + tallest * (BOX_HEIGHT + GAP_Y) + GAP_Y
    place: dict[str, tuple[float, float]] = {}
    for index, column in enumerate(grid):
        free = (tallest - len(column)) * (BOX_HEIGHT + GAP_Y) / 2
        for row, room in enumerate(column):
            place[room] = (2 * MARGIN + index * (BOX_WIDTH + GAP_X), top + TITLE + GAP_Y / 2 + free + row * (BOX_HEIGHT + GAP_Y))
    shapes = [f'<rect x="{MARGIN}" y="{top:g}" width="{width - 2 * MARGIN:g}" height="{height:g}" rx="8" fill="{COLOURS[layer]}"/>',
              f'<text x="{MARGIN + 10}" y="{top + 17:g}" font-weight="bold">{layer}/</text>']
    edges = reduced({room: {target for target in table[room] if target in rooms} for room in rooms})
    shapes += [arrow(place[target], place[room]) for room in sorted(edges) for target in sorted(edges[room])]
    shapes += [box(room, room.removeprefix(f"{layer}/"), *place[room]) for room in sorted(place)]
    return shapes, height


def map_svg() -> str:
    """The whole map."""
    table = {room: set(targets) - {room} for room, targets in ALLOWED.items()}
    widest = max(len(columns([room for room in table if layer_of(room) == layer], table)) for layer in LAYERS)
    width = 4 * MARGIN + widest * BOX_WIDTH + (widest - 1) * GAP_X
    shapes: list[str] = []
    top = float(MARGIN)
    for layer in reversed(LAYERS):
        layer_shapes, height = layer_svg(layer, top, width, table)
        shapes += layer_shapes
        top += height + MARGIN
    note = "An arrow a → b: b includes a. A layer may include the layers below it. Broken border: no LibTorch."
    shapes.append(f'<text x="{MARGIN + 10}" y="{top + 4:g}">{note}</text>')
    head = ('<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#888"/></marker>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{top + 20:g}" font-family="sans-serif" '
            f'font-size="12"><title>The rooms of sdtune and who includes whom</title><defs>{head}</defs>\n'
            + "\n".join(shapes) + "\n</svg>\n")


def main() -> int:
    text = map_svg()
    if "--check" in sys.argv[1:]:
        same = PICTURE.is_file() and PICTURE.read_text() == text
        print("map: ok" if same else "docs/pictures/map.svg is stale: run scripts/draw_map.py")
        return 0 if same else 1
    PICTURE.write_text(text)
    print(PICTURE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes docs/api, a page a section of the Python module, from its stub and its docstrings. Run it after a change of either.

    .venv/bin/python scripts/make_api_pages.py [--check]      --check only compares (exit 1 when a page is stale)

Names, arguments and types are those of python/sdtune/_native.pyi, whose sections (a comment at the margin) become pages; what a thing
does is its docstring, the stub's or else the module's own.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import sdtune

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "python" / "sdtune" / "_native.pyi"
FOLDER = ROOT / "docs" / "api"
WIDTH = 120
# Attributes of these are options, which docs/reference.md has with their defaults and ranges.
OPTIONS = {"TrainConfig"}
TESTS_ONLY = {"testing"}

Item = ast.ClassDef | ast.FunctionDef


def sections(text: str) -> list[tuple[str, list[Item]]]:
    """(title, classes and functions) of each section of the stub, in its order."""
    titles = [(number, line[2:].strip()) for number, line in enumerate(text.splitlines(), 1) if line.startswith("# ")]
    found: list[tuple[str, list[Item]]] = [(title, []) for _, title in titles]
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in TESTS_ONLY:
            found[max(index for index, (line, _) in enumerate(titles) if line < node.lineno)][1].append(node)
    return [(title, items) for title, items in found if items]


def signature(node: ast.FunctionDef, name: str) -> str:
    """`name(arguments) -> result`, without self, broken at commas where it is long."""
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, /)?(, )?", "", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    line = f"{name}({arguments}){result}"
    if len(line) <= WIDTH:
        return line
    parts = [ast.unparse(ast.arguments([], [argument], None, [], [], None, [])) for argument in node.args.args]
    pieces = re.split(r", (?=\*?\*?\w+(?::|=|,|$)|\*,)", arguments) if parts else [arguments]
    lines, current = [f"{name}("], "    "
    for index, piece in enumerate(pieces):
        piece += "," if index + 1 < len(pieces) else ""
        if len(current) + len(piece) > WIDTH:
            lines.append(current.rstrip())
            current = "    "
        current += piece + " "
    return "\n".join([*lines, current.rstrip() + f"){result}"])


def documentation(node: Item, thing: object) -> str:
    """The stub's docstring, else the module's without the signatures that pybind11 puts first."""
    text = ast.get_docstring(node)
    if text is None and thing is not None and not isinstance(thing, type) | (getattr(thing, "__doc__", None) is None):
        lines = inspect.cleandoc(thing.__doc__).splitlines()
        while lines and (re.match(r"\w+\(.*\)( -> .*)?$", lines[0]) or not lines[0].strip()):
            lines.pop(0)
        text = "\n".join(lines)
    return (text or "").strip()


def class_page(node: ast.ClassDef) -> list[str]:
    """A class: what it is, how it is made, its methods and properties."""
    kind = getattr(sdtune, node.name)
    bases = [ast.unparse(base) for base in node.bases]
    lines = [f"## {node.name}", ""]
    if bases:
        lines += [f"A kind of `{', '.join(bases)}`.", ""]
    lines += [text, ""] if (text := documentation(node, kind)) else []
    properties = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and node.name not in OPTIONS:
            properties.append((ast.unparse(item.target), ast.unparse(item.annotation), ""))
        if not isinstance(item, ast.FunctionDef):
            continue
        decorators = [ast.unparse(decorator) for decorator in item.decorator_list]
        if any(decorator.endswith("setter") for decorator in decorators):
            continue
        if "property" in decorators:
            properties.append((item.name, ast.unparse(item.returns) if item.returns else "", documentation(item, None)))
            continue
        name = {"__init__": node.name, "__call__": "instance"}.get(item.name, item.name)
        static = f"{node.name}." if "staticmethod" in decorators or "classmethod" in decorators else ""
        lines += ["```python", signature(item, static + name), "```"]
        lines += [text, ""] if (text := documentation(item, getattr(kind, item.name, None))) else [""]
    if node.name in OPTIONS:
        lines += ["Its attributes are the options of `train`: [reference.md](../reference.md).", ""]
    if properties:
        lines += ["| attribute | type | |", "|---|---|---|"]
        lines += [f"| `{name}` | `{kind_text}` | {' '.join(text.split())} |".replace("| None`", "\\| None`")
                  for name, kind_text, text in properties]
        lines.append("")
    return lines


def pages() -> dict[str, str]:
    """File name -> text of every page, with an index."""
    texts: dict[str, str] = {}
    index = ["# The Python module", "", f"{sdtune.__doc__.strip().splitlines()[0]} Made by scripts/make_api_pages.py; "
             "how the module behaves is in [python.md](../python.md).", "", "| page | names |", "|---|---|"]
    for title, items in sections(STUB.read_text()):
        heading = re.split(r"[:;.]", title)[0].strip()
        file = re.sub(r"\W+", "_", heading.lower()).strip("_") + ".md"
        lines = [f"# {heading}", "", *([title, ""] if title != heading else [])]
        for node in items:
            if isinstance(node, ast.ClassDef):
                lines += class_page(node)
            else:
                text = documentation(node, getattr(sdtune, node.name))
                lines += [f"## {node.name}", "", "```python", signature(node, node.name), "```", text, ""]
        texts[file] = "\n".join(lines).rstrip() + "\n"
        index.append(f"| [{heading}]({file}) | {', '.join(f'`{node.name}`' for node in items)} |")
    texts["README.md"] = "\n".join(index) + "\n"
    return texts


def main() -> int:
    wanted = pages()
    present = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if "--check" in sys.argv[1:]:
        print(f"docs/api is stale ({', '.join(stale)}): run scripts/make_api_pages.py" if stale else "api pages: ok")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name])
        else:
            (FOLDER / name).unlink()
    print(f"docs/api: {len(wanted)} pages, {len(stale)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())

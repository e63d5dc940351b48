#!/usr/bin/env python3
"""Searches what people read for words that this field does not use. Exit 1 with one line an offence.

    scripts/check_english.py [--program build/app/sdtune]     help of every command, documents, errors, docstrings
    scripts/check_english.py --sources                        without the program's help
    scripts/check_english.py --count                          offences a file only

Searched: `sdtune COMMAND --help`, README.md and the other pages of the root, docs/ with docs/measurements, the model cards, YAML files,
shell scripts, notebooks, string literals of C++ sources (help, errors, reports), comments of C++ sources, docstrings and comments of
Python, tests and scripts included. One word for one thing: image for pixels, photo for what the user gives, generate for making images,
draw for random numbers only.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from english_words import EXCEPTIONS, REFUSED  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/*.md", "docs/measurements/*.md", "models/*/README.md", "examples/**/README.md")
PLAIN = ("configs/**/*.yaml", "models/**/*.yaml", "scripts/**/*.yaml", "scripts/**/*.sh", "tests/compatibility/*.sh", ".ci/run",
         ".pre-commit-config.yaml")
NOTEBOOKS = "examples/notebooks/*.ipynb"
GENERATED = {"docs/reference.md"}  # the program's own words, which are searched in its help
STRINGS = ("model/**/*.cpp", "model/**/*.h", "train/**/*.cpp", "train/**/*.h", "app/**/*.cpp", "app/**/*.h", "python/src/*.cpp",
           "python/src/*.h")
COMMENTED = (*STRINGS, "model/**/*.cu", "model/**/*.cuh", "tests/**/*.cpp", "tests/**/*.h")
PYTHON = ("scripts/**/*.py", "tests/python/*.py")
WORD_LISTS = {"scripts/english_words.py", "scripts/check_english.py", "tests/python/test_checks.py"}  # they quote refused words
STUBS = ("python/sdtune/*.py", "python/sdtune/*.pyi")
# A C++ string or a comment, whichever begins first; only the string is kept. Character literals would open strings that are none.
CPP_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|\'(?:[^\'\\\n]|\\.)+\'|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)

Text = tuple[str, int, str]  # place, line, text


def page_texts() -> Iterator[Text]:
    """The lines of the documents; generated pages are those of the program and the stubs, which are searched themselves."""
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            place = str(path.relative_to(ROOT))
            if place not in GENERATED:
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    yield place, number, line


def plain_texts() -> Iterator[Text]:
    """The lines of YAML files and of shell scripts: people read and copy all of them."""
    for pattern in PLAIN:
        for path in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                yield str(path.relative_to(ROOT)), number, line


def notebook_texts() -> Iterator[Text]:
    """The lines of the notebooks' cells, outputs left out; numbered through the whole notebook."""
    for path in sorted(ROOT.glob(NOTEBOOKS)):
        lines = [line for cell in json.loads(path.read_text())["cells"] for line in "".join(cell["source"]).splitlines()]
        for number, line in enumerate(lines, 1):
            yield str(path.relative_to(ROOT)), number, line


def literal_texts() -> Iterator[Text]:
    """String literals of C++ sources that hold a space or are one word: words for people. Others are names and keys."""
    for pattern in STRINGS:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text()
            for match in CPP_TEXT.finditer(text):
                literal = match.group(3) if match.group(3) is not None else match.group(2)
                if literal and (" " in literal.strip() or literal.isalpha()):
                    yield str(path.relative_to(ROOT)), text.count("\n", 0, match.start()) + 1, literal


def comment_texts() -> Iterator[Text]:
    """The comments of C++ and CUDA sources, a line each."""
    for pattern in COMMENTED:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text()
            for match in CPP_TEXT.finditer(text):
                if match.group(0).startswith("/"):
                    first = text.count("\n", 0, match.start()) + 1
                    for number, line in enumerate(match.group(0).splitlines(), first):
                        yield str(path.relative_to(ROOT)), number, line


def docstring_texts() -> Iterator[Text]:
    """Docstrings and comments of scripts and tests, a line each."""
    for pattern in PYTHON:
        for path in sorted(ROOT.glob(pattern)):
            place = str(path.relative_to(ROOT))
            if place in WORD_LISTS:
                continue
            for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
                if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
                    for number, line in enumerate(token.string.splitlines(), token.start[0]):
                        yield place, number, line


def stub_texts() -> Iterator[Text]:
    """The lines of the Python package: nearly all of a stub is docstring."""
    for pattern in STUBS:
        for path in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                yield str(path.relative_to(ROOT)), number, line


def commands_in(overview: list[str]) -> list[str]:
    """The commands that the program's help lists."""
    return [match.group(1) for line in overview if (match := re.match(r"  ([a-z]+(?:-[a-z]+)*)\s{2,}\S", line))]


def help_texts(program: Path) -> Iterator[Text]:
    """What the program says of itself: its own help and that of every command."""
    def help_of(words: list[str]) -> list[str]:
        done = subprocess.run([str(program), *words, "--help"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    overview = help_of([])
    commands = commands_in(overview)
    if "train" not in commands:
        raise SystemExit(f"check_english: {program} --help lists no commands")
    for words in [[], *([command] for command in commands)]:
        for number, line in enumerate(overview if not words else help_of(words), 1):
            yield " ".join(["sdtune", *words, "--help"]), number, line


def offences(texts: Iterator[Text]) -> list[tuple[str, str]]:
    """(place, message) of each refused word that no exception allows."""
    found = []
    for place, number, text in texts:
        for pattern, advice in REFUSED:
            for match in pattern.finditer(text):
                if any(where.search(place) and allowed_at(allowed, text, match) for where, allowed, _ in EXCEPTIONS):
                    continue
                found.append((place, f'{place}:{number}: "{match.group(0)}": {advice}: {text.strip()[:110]}'))
    return found


def allowed_at(allowed: re.Pattern[str], text: str, match: re.Match[str]) -> bool:
    """Whether the exception's text covers the refused word where it stands."""
    return any(span.start() <= match.start() and match.end() <= span.end() for span in allowed.finditer(text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "app" / "sdtune")
    parser.add_argument("--sources", action="store_true", help="do not run the program")
    parser.add_argument("--count", action="store_true", help="print offences a file")
    options = parser.parse_args()
    sources = (page_texts, plain_texts, notebook_texts, literal_texts, comment_texts, docstring_texts, stub_texts)
    found = [offence for texts in sources for offence in offences(texts())]
    if not options.sources:
        found += offences(help_texts(options.program))
    if options.count:
        for place, count in Counter(place for place, _ in found).most_common():
            print(f"{count:5} {place}")
    else:
        print("\n".join(message for _, message in found) if found else "english: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

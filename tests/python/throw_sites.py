"""Finds the statements of the sources that refuse something, and reads the list that says how each of them is reached."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("throw_sites.txt")

# The rooms whose code `train` may run before its first step. single_file, plan, pretrain and renderer belong to other
# commands; app/cli and app/commands read the words of the command line.
ROOMS = ["model/base", "model/files", "model/options", "model/tokenizer", "model/image", "model/core", "model/kernels",
         "model/kernels/cuda", "model/nn", "model/clip", "model/unet", "model/vae", "model/schedule", "model/weights", "model/pipeline",
         "model/lora", "model/generate", "train/config", "train/data", "train/objective", "train/optim",
         "train/optim/cuda", "train/precision", "train/dist", "train/observe", "train/checkpoint", "train/parameters", "train/identity",
         "train/preflight", "train/prepare", "train/rental", "train/resume", "train/shard", "train/track", "train/run", "train/portrait/classifier",
         "train/portrait/evaluate", "app/cli"]
FILES = ["app/commands/train_command.cpp", "app/commands/training_arguments.cpp"]

STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)
# A statement that refuses: it throws, adds a Problem to a list, or calls the `fail` or `refuse` that throws.
LISTS = r"(?:problems|changes|bad|missing|duplicates_|unknown|faults)"
REFUSAL = re.compile(rf"\bthrow\b(?!\s*;)|\b{LISTS}\.push_back\((?:\s*\{{|unknown_setting)"
                     r"|(?<![\w:~])(?:\w+[.])?(?:fail|refuse)\(")
# The head of a function that gives a Problem back: what it returns is a refusal as well.
PROBLEM_FUNCTION = re.compile(r"(?:std::vector<Problem>|std::optional<Problem>|\bProblem)\s+(?:\w+::)?\w+\([^;{}]*\)[^;{}()]*\{")
SHORTEST = 4


@dataclass(frozen=True)
class Site:
    """One statement. `text` is what it says: its string literals, or the code where it has none."""

    path: str
    text: str
    literals: tuple[str, ...]
    line: int

    @property
    def key(self) -> str:
        return f"{self.path}: {self.text}"


def without_comments(source: str) -> str:
    """The source with comments blanked out, as long as before."""
    def blank(match: re.Match[str]) -> str:
        text = match.group(0)
        return re.sub(r"[^\n]", " ", text) if text.startswith("/") else text
    return TOKEN.sub(blank, source)


def masked(source: str) -> str:
    """The source with the content of its strings blanked out, so that signs in them do not count."""
    def blank(match: re.Match[str]) -> str:
        text = match.group(0)
        return text[0] + " " * (len(text) - 2) + text[-1]
    return TOKEN.sub(blank, source)


def end_of_statement(code: str, start: int) -> int:
    """The semicolon that ends a statement, or the end of a brace that closes before."""
    depth = 0
    for at in range(start, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
        elif code[at] == ";" and depth <= 0:
            return at
    return len(code)


def end_of_block(code: str, start: int) -> int:
    """The position behind the brace that closes the one at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return len(code)


def returned_problems(code: str) -> list[int]:
    """Where functions give back a Problem that they make themselves."""
    places = []
    for head in PROBLEM_FUNCTION.finditer(code):
        body = head.end() - 1
        end = end_of_block(code, body)
        places += [body + found.start() for found in re.finditer(r"\breturn (?:Problem)?\{(?!\s*\})", code[body:end])]
    return places


def refusals(code: str) -> list[int]:
    """Where the statements that refuse begin."""
    places = set(returned_problems(code))
    for found in REFUSAL.finditer(code):
        text = found.group(0)
        line = code[code.rfind("\n", 0, found.start()) + 1:found.end()]
        if text.endswith(("fail(", "refuse(")) and re.search(r"\b(?:void|auto|bool)\s", line):
            continue  # its declaration
        places.add(found.start())
    return sorted(places)


def literals_of(statement: str) -> list[str]:
    """The string literals, adjacent ones as one."""
    found: list[str] = []
    end = -1
    for match in STRING.finditer(statement):
        if found and not statement[end:match.start()].strip():
            found[-1] += match.group(0)[1:-1]
        else:
            found.append(match.group(0)[1:-1])
        end = match.end()
    return found


def sites_of(path: str, source: str) -> list[Site]:
    """The statements of one file that refuse."""
    readable = without_comments(source)
    code = masked(readable)
    found, seen = [], Counter()
    for start in refusals(code):
        statement = readable[start:end_of_statement(code, start)]
        if "push_back" in statement and not STRING.search(statement) and "unknown_setting" not in statement:
            continue  # no Problem, or one that another statement made
        literals = tuple(text for text in literals_of(statement) if len(text) >= SHORTEST)
        text = " ... ".join(literals) if literals else " ".join(statement.split())
        text = text if len(text) <= 120 else text[:117] + "..."
        seen[text] += 1
        found.append(Site(path, text if seen[text] == 1 else f"{text} #{seen[text]}", literals,
                          source.count("\n", 0, start) + 1))
    return found


def all_sites() -> list[Site]:
    """Every site of the rooms, in the order of the files."""
    paths = [path for room in ROOMS for path in sorted((ROOT / room).glob("*.*")) if path.suffix in {".cpp", ".h", ".cu", ".cuh"}]
    paths += [ROOT / file for file in FILES]
    return [site for path in paths for site in sites_of(path.relative_to(ROOT).as_posix(), path.read_text())]


@dataclass(frozen=True)
class Entry:
    """What the list says of a site: the cases that reach it, or why there is none."""

    cases: tuple[str, ...]
    reason: str


def read_list() -> dict[str, Entry]:
    """The list, by the key of the site. Blank lines and lines that begin with # say nothing."""
    entries: dict[str, Entry] = {}
    path = ""
    for line in LIST.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            path = line
            continue
        text, _, how = line[4:].rpartition(" <- ")
        key = f"{path}: {text}"
        assert text and key not in entries, f"not read: {line}"
        cases = tuple(how.removeprefix("case: ").split(", ")) if how.startswith("case: ") else ()
        entries[key] = Entry(cases, "" if cases else how)
    return entries


def reasons() -> list[str]:
    """The reasons that the head of the list explains."""
    return re.findall(r"^#   (\w[\w-]*):? ", LIST.read_text(), re.MULTILINE)


def plain(literal: str) -> str:
    """A literal as it is printed."""
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match.group(1), match.group(1)), literal)


COUNTS: Counter[str] = Counter()


def is_said(site: Site, lines: str) -> bool:
    """Whether the lines hold a literal of the site that no other site has; of one without such a literal, its longest."""
    if not site.literals:
        return True
    if not COUNTS:
        COUNTS.update(literal for other in all_sites() for literal in set(other.literals))
    own = [literal for literal in site.literals if COUNTS[literal] == 1] or [max(site.literals, key=len)]
    return any(plain(literal).strip() in lines for literal in own)


if __name__ == "__main__":
    listed = read_list()
    for site in all_sites():
        if site.key not in listed:
            print(f"{site.path}\n    {site.text} <- case: ")

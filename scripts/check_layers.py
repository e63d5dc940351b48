#!/usr/bin/env python3
"""Checks the house: include directions, file and function sizes, file names. Exit 1 with one line an offence.

The table below is the one place where the allowed directions are written down; docs/architecture.md explains them.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# folder -> the folders it may include (itself is always allowed).
MODEL = {
    "model/base": [],
    "model/image": ["model/base"],
    "model/core": ["model/base"],
    "model/kernels": ["model/base", "model/core"],
    "model/nn": ["model/base", "model/core", "model/kernels"],
    "model/clip": ["model/base", "model/core", "model/kernels", "model/nn"],
    "model/unet": ["model/base", "model/core", "model/kernels", "model/nn"],
    "model/vae": ["model/base", "model/core", "model/kernels", "model/nn"],
    "model/schedule": ["model/base", "model/core"],
    "model/weights": ["model/base", "model/core", "model/nn", "model/clip", "model/unet", "model/vae", "model/schedule"],
    "model/pipeline": ["model/base", "model/core", "model/nn", "model/clip", "model/unet", "model/vae",
                       "model/schedule", "model/weights"],
    "model/single_file": ["model/base", "model/core", "model/nn", "model/clip", "model/unet", "model/vae",
                          "model/schedule", "model/weights", "model/pipeline"],
    "model/lora": ["model/base", "model/core", "model/nn", "model/clip", "model/unet", "model/weights", "model/pipeline",
                   "model/single_file"],
}
COMPONENTS = ["train/data", "train/objective", "train/optim", "train/precision", "train/dist", "train/observe"]
TRAIN = {folder: sorted(MODEL) for folder in COMPONENTS}
# Only the options structs of the components: see OPTIONS_ONLY.
TRAIN["train/config"] = ["model/base", "train/run", "train/checkpoint", *COMPONENTS]
TRAIN["train/portrait"] = ["model/base"]
TRAIN["train/judge"] = sorted(MODEL) + ["train/portrait"]
TRAIN["train/checkpoint"] = sorted(MODEL) + ["train/data", "train/optim", "train/precision", "train/dist"]
TRAIN["train/run"] = sorted(MODEL) + COMPONENTS + ["train/config", "train/checkpoint", "train/judge", "train/evaluate"]
TRAIN["train/pretrain"] = sorted(TRAIN) + sorted(MODEL)
TRAIN["train/plan"] = sorted(MODEL) + COMPONENTS + ["train/config", "train/checkpoint", "train/run"]
TRAIN["train/evaluate"] = sorted(MODEL) + ["train/portrait", "train/judge", "train/data"]
APP = {
    "app": ["app", "app/commands", "app/cli", "model/base"],
    "app/cli": ["model/base", "train/config"],
    "app/faces": [],
    "app/ui": ["model/base", "train/observe"],
    "app/commands": ["app/cli", "app/ui", "train/portrait", "train/judge", "train/evaluate", "train/pretrain",
                     "train/plan", "train/run", "train/config", "train/observe", "train/dist", "train/data", "train/checkpoint",
                     "model/base", "model/core", "model/pipeline", "model/weights", "model/image", "model/schedule",
                     "model/single_file", "model/lora"],
}
PYTHON = {"python/src": sorted(MODEL) + sorted(TRAIN)}
ALLOWED = {**MODEL, **TRAIN, **APP, **PYTHON}
# Folders that may include only `*options.h` of their neighbours.
OPTIONS_ONLY = {"train/config"}
NO_TORCH = {"model/base", "model/image", "train/config", "train/portrait"}

MAX_FILE_LINES = 400
MAX_HEADER_LINES = 150
MAX_FUNCTION_LINES = 60
MAX_MAIN_LINES = 60
FORBIDDEN_NAMES = re.compile(r"(^|_)(util|utils|helper|helpers|common|misc|manager)(_|\.|$)")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def tracked_files() -> list[Path]:
    """Every file git tracks or would track, relative to the root."""
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                             capture_output=True, text=True).stdout
    return [Path(line) for line in listing.splitlines() if (ROOT / line).is_file()]


def include_offences(path: Path, text: str) -> list[str]:
    """Includes against the table, and LibTorch where none may be."""
    folder = path.parent.as_posix()
    if folder not in ALLOWED:
        return []
    offences = []
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        target = match.group(2)
        place = f"{path}:{line}"
        if match.group(1) == "<":
            if folder in NO_TORCH and re.match(r"(torch|ATen|c10|caffe2)/", target):
                offences.append(f"{place}: {folder} holds no LibTorch (includes {target})")
            if target == "torch/torch.h":
                offences.append(f"{place}: torch/torch.h is the catch-all header; include torch/types.h")
            continue
        target_folder = Path(target).parent.as_posix()
        if target_folder not in ALLOWED:
            offences.append(f"{place}: include from the root, by folder (got \"{target}\")")
        elif target_folder != folder and target_folder not in ALLOWED[folder]:
            offences.append(f"{place}: {folder} may not include {target_folder}")
        elif folder in OPTIONS_ONLY and target_folder.startswith("train/") and target_folder != folder \
                and not target.endswith("options.h"):
            offences.append(f"{place}: {folder} may include only *options.h of {target_folder}")
    return offences


def cpp_functions(text: str) -> list[tuple[int, int, str]]:
    """(first line, number of lines, first words) of each outermost brace block that follows a ')' or a specifier.

    Formatted code puts a function's opening brace at the end of its header's last line and the closing one alone at the
    header's indentation, so counting from the one to the other is exact for clang-format's output.
    """
    functions = []
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if not re.search(r"\)\s*(const|noexcept|override|final|\s|->\s*[\w:<>*&, ]+)*\{$", line):
            continue
        start = index
        while start > 0 and lines[start].startswith("    ") and not lines[start - 1].endswith((";", "{", "}", ":")):
            start -= 1
        indent = len(lines[start]) - len(lines[start].lstrip())
        if re.match(r"\s*(if|for|while|switch|else|do|try|catch|return|\}|namespace)\b", lines[start]) or indent > 4:
            continue
        for end in range(index + 1, len(lines)):
            if lines[end].strip() and len(lines[end]) - len(lines[end].lstrip()) <= indent and lines[end].lstrip()[0] == "}":
                functions.append((start + 1, end - start + 1, lines[start].strip()[:60]))
                break
    return functions


def python_functions(text: str) -> list[tuple[int, int, str]]:
    """(first line, number of lines, name) of each function."""
    return [(node.lineno, node.end_lineno - node.lineno + 1, node.name) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def size_offences(path: Path, text: str) -> list[str]:
    """Files and functions that are too long."""
    offences = []
    count = text.count("\n")
    limit = MAX_HEADER_LINES if path.suffix == ".h" else MAX_FILE_LINES
    if path.as_posix() == "app/main.cpp":
        limit = MAX_MAIN_LINES
    if count > limit:
        offences.append(f"{path}: {count} lines (allowed: {limit})")
    functions = python_functions(text) if path.suffix == ".py" else cpp_functions(text)
    for line, length, name in functions:
        if length > MAX_FUNCTION_LINES:
            offences.append(f"{path}:{line}: {length} lines in one function (allowed: {MAX_FUNCTION_LINES}): {name}")
    return offences


def main() -> int:
    offences = []
    for path in tracked_files():
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh", ".py"}:
            continue
        text = (ROOT / path).read_text()
        if FORBIDDEN_NAMES.search(path.name):
            offences.append(f"{path}: name it for its one job, not util, helpers, common, misc or manager")
        if path.suffix != ".py":
            offences += include_offences(path, text)
        offences += size_offences(path, text)
    print("\n".join(offences) if offences else "layers: ok")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

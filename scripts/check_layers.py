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
LOW = ["model/base", "model/files", "model/options", "model/tokenizer"]
NETWORKS = ["model/core", "model/products", "model/kernels", "model/nn"]
MODEL = {
    "model/base": [],
    "model/files": ["model/base"],
    "model/pickle": ["model/base", "model/files"],
    "model/options": ["model/base", "model/files"],
    "model/tokenizer": ["model/base", "model/files"],
    "model/image": ["model/base", "model/files"],
    "model/core": ["model/base", "model/files"],
    "model/core/cuda": ["model/core"],
    "model/machine": ["model/base", "model/files", "model/options", "model/core"],
    "model/products": ["model/base", "model/core"],
    "model/kernels": ["model/base", "model/core", "model/products"],
    "model/kernels/cuda": ["model/base", "model/core"],
    "model/nn": ["model/base", "model/core", "model/products", "model/kernels"],
    "model/clip": [*LOW, *NETWORKS],
    "model/unet": [*LOW, *NETWORKS],
    "model/vae": [*LOW, *NETWORKS],
    "model/schedule": [*LOW, "model/core"],
    "model/weights": [*LOW, *NETWORKS, "model/clip", "model/unet", "model/vae", "model/schedule"],
}
MODEL["model/pipeline"] = [*MODEL["model/weights"], "model/weights"]
MODEL["model/single_file"] = [*MODEL["model/pipeline"], "model/pipeline", "model/pickle"]
MODEL["model/lora"] = [*MODEL["model/single_file"], "model/single_file"]
MODEL["model/generate"] = [*MODEL["model/lora"], "model/lora", "model/image"]
WHOLE_MODEL = sorted(MODEL)
COMPONENTS = ["train/data", "train/objective", "train/optim", "train/precision", "train/dist", "train/observe"]
TRAIN = {"train/config": LOW}
TRAIN |= {folder: [*WHOLE_MODEL, "train/config"] for folder in COMPONENTS}
TRAIN["train/rental"] = ["model/base", "model/files"]
TRAIN["train/track"] = [*LOW, "train/config", "train/observe"]
TRAIN["train/dist/cuda"] = ["train/dist"]
TRAIN["train/optim/cuda"] = ["model/core", "model/kernels/cuda", "train/optim"]
TRAIN["train/parameters"] = [*WHOLE_MODEL, "train/config"]
TRAIN["train/shard"] = [*WHOLE_MODEL, "train/config", "train/dist", "train/optim", "train/parameters"]
TRAIN["train/checkpoint"] = [*WHOLE_MODEL, "train/config", "train/optim", "train/precision"]
TRAIN["train/identity"] = [*WHOLE_MODEL, "train/config", *COMPONENTS, "train/checkpoint"]
TRAIN["train/resume"] = [*WHOLE_MODEL, "train/config", "train/data", "train/optim", "train/precision", "train/checkpoint"]
TRAIN["train/preflight"] = [*TRAIN["train/identity"], "train/identity", "train/parameters", "train/rental", "train/resume",
                            "train/track"]
TRAIN["train/prepare"] = [*TRAIN["train/preflight"], "train/preflight"]
TRAIN["train/profile"] = [*LOW, "train/observe"]
TRAIN["train/run"] = [*TRAIN["train/prepare"], "train/prepare", "train/profile", "train/shard"]
TRAIN["train/plan"] = [*TRAIN["train/run"], "train/run"]
TRAIN["train/tune"] = [*TRAIN["train/run"], "train/run"]
TRAIN["train/prove"] = [*TRAIN["train/plan"], "train/plan"]
# The bundled base's factory: training reaches it only through train/identity/portrait_reader_source.h.
PORTRAIT = {
    "train/portrait/scene": LOW,
    "train/portrait/detailed": [*LOW, "train/portrait/scene"],
    "train/portrait/renderer": [*LOW, "train/portrait/scene", "train/portrait/detailed"],
    "train/portrait/classifier": [*WHOLE_MODEL, "train/identity", "train/portrait/scene", "train/portrait/detailed",
                                  "train/portrait/renderer"],
    "train/portrait/evaluate": [*WHOLE_MODEL, "train/config", "train/data", "train/identity",
                                "train/portrait/scene", "train/portrait/renderer", "train/portrait/classifier"],
    "train/portrait/pretrain": [*TRAIN["train/run"], "train/run", "train/portrait/scene", "train/portrait/renderer",
                                "train/portrait/classifier"],
}
WHOLE_TRAIN = [*TRAIN, *PORTRAIT]
APP = {
    "app": ["app/cli", "app/commands", "model/base"],
    "app/cli": [*LOW, "model/core"],
    "app/faces": [],
    "app/launch": ["model/base", "model/options"],
    "app/ui": ["model/base", "train/observe"],
    "app/completion": ["app/commands", "model/base", "model/options"],
    "app/convert": ["app/cli", "app/commands", *WHOLE_MODEL],
    "app/hub": ["app/cli", "app/commands", "app/ui", *WHOLE_MODEL, "train/observe"],
    "app/inspect": ["app/cli", "app/commands", *WHOLE_MODEL, *WHOLE_TRAIN],
    "app/prove": ["app/cli", "app/commands", *WHOLE_MODEL, *WHOLE_TRAIN],
    "app/commands": ["app/cli", "app/launch", "app/ui", *WHOLE_MODEL, *WHOLE_TRAIN],
}
PYTHON = {"python/src": [*WHOLE_MODEL, *WHOLE_TRAIN]}
ALLOWED = {**MODEL, **TRAIN, **PORTRAIT, **APP, **PYTHON}
# Folders in which only these headers of another one may be included.
ONLY = {(folder, "train/config"): re.compile(r"_options\.h$") for folder in COMPONENTS}
NO_TORCH = {"model/base", "model/files", "model/pickle", "model/options", "model/tokenizer", "model/image", "train/config", "train/rental",
            "train/portrait/scene", "train/portrait/detailed", "train/portrait/renderer", "app/faces",
            "app/launch"}

MAX_ROOM = 30  # a header and its source count as one
CPP = {".h", ".cpp", ".cu", ".cuh"}
LAYERS = {"model", "train", "app", "python"}
MAX_FILE_LINES = 400
MAX_HEADER_LINES = 150
MAX_FUNCTION_LINES = 60
MAX_MAIN_LINES = 60
FORBIDDEN_NAMES = re.compile(r"(^|_)(util|utils|helper|helpers|common|misc|manager)(_|\.|$)")
# The one file that may launch a kernel (on the device of its stream), what stands for CUDA on a CPU, and what a launch is.
LAUNCHER = Path("model/kernels/cuda/launch.cuh")
STAND_IN = Path("tests/gpu/host")
# Who computes on a device says whether float32 may be rounded to TF32: cuDNN does it by default.
DEVICE = re.compile(r"\bmodel::parse_device\s*\(")
LAUNCH = re.compile(r"<<<|\b(?:cudaLaunch|cuLaunch)\w*\s*\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
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
        elif (folder, target_folder) in ONLY and not ONLY[folder, target_folder].search(target):
            offences.append(f"{place}: {folder} may include only *_options.h of {target_folder} (includes {target})")
    return offences


def launch_offences(path: Path, text: str) -> list[str]:
    """Kernels launched elsewhere than in the one file that makes their device the current one."""
    if path == LAUNCHER or path.is_relative_to(STAND_IN):
        return []
    code = COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
    return [f"{path}:{code.count(chr(10), 0, match.start()) + 1}: launches a kernel; only {LAUNCHER} may"
            for match in LAUNCH.finditer(code)]


def precision_offences(path: Path, text: str) -> list[str]:
    """Commands and runs that take a device and leave it to cuDNN what float32 means (python/src has ComputeScope)."""
    code = COMMENT.sub("", text)
    if path.parts[0] not in {"app", "train"} or not DEVICE.search(code) or "Tf32Scope" in code:
        return []
    return [f"{path}: computes on a device of its own without a Tf32Scope"]


def include_graph(files: list[Path]) -> dict[str, set[str]]:
    """folder -> the other folders that its sources include, as the code has it."""
    graph: dict[str, set[str]] = {}
    for path in files:
        folder = path.parent.as_posix()
        if path.suffix not in CPP or path.parts[0] not in LAYERS:
            continue
        targets = {Path(target).parent.as_posix() for mark, target in INCLUDE.findall((ROOT / path).read_text())
                   if mark == '"'}
        graph.setdefault(folder, set()).update(targets - {folder})
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of folders that reach each other (Tarjan's strongly connected components of more than one folder)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(folder: str) -> None:
        index[folder] = low[folder] = len(index)
        stack.append(folder)
        for target in sorted(graph.get(folder, ())):
            if target not in index:
                visit(target)
                low[folder] = min(low[folder], low[target])
            elif target in stack:
                low[folder] = min(low[folder], index[target])
        if low[folder] == index[folder]:
            group = stack[stack.index(folder):]
            del stack[stack.index(folder):]
            if len(group) > 1:
                found.append(sorted(group))

    for folder in sorted(graph):
        if folder not in index:
            visit(folder)
    return found


def room_offences(files: list[Path]) -> list[str]:
    """Folders without a row in the table, and those with too many sources."""
    rooms: dict[str, set[str]] = {}
    for path in files:
        if path.suffix in CPP and path.parts[0] in LAYERS:
            rooms.setdefault(path.parent.as_posix(), set()).add(path.stem)
    offences = [f"{room}: stands in no row of the table of scripts/check_layers.py" for room in sorted(rooms)
                if room not in ALLOWED and not room.endswith("/off")]
    return offences + [f"{room}: {len(sources)} sources in one folder (allowed: {MAX_ROOM})"
                       for room, sources in sorted(rooms.items()) if len(sources) > MAX_ROOM]


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
    files = tracked_files()
    offences = room_offences(files)
    offences += [f"{', '.join(group)}: include each other" for group in cycles(include_graph(files))]
    offences += [f"{', '.join(group)}: may include each other by the table" for group in
                 cycles({folder: set(targets) for folder, targets in ALLOWED.items()})]
    for path in files:
        if path.suffix not in {*CPP, ".py"}:
            continue
        text = (ROOT / path).read_text()
        if FORBIDDEN_NAMES.search(path.name):
            offences.append(f"{path}: name it for its one job, not util, helpers, common, misc or manager")
        if path.suffix != ".py":
            offences += include_offences(path, text) + launch_offences(path, text) + precision_offences(path, text)
        offences += size_offences(path, text)
    print("\n".join(offences) if offences else "layers: ok")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compiles every CUDA kernel for each architecture of a release, and checks what ptxas and the PTX say. No GPU is needed.

    scripts/ptxas_table.py                    all architectures; writes docs/measurements/kernels_ptxas.md
    scripts/ptxas_table.py --check [ARCH...]  only checks, for all or for these architectures ("90")

Exit 1 where a kernel spills registers, where the PTX of the random numbers or of AdamW holds a fused multiply-add on float32
(their bits are the CPU's), or where ptxas names no kernel. Environment: CUDACXX = the nvcc to use.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "measurements" / "kernels_ptxas.md"
ARCHITECTURES = ROOT / "cmake" / "SdtuneCudaBuild.cmake"
BUILD = ROOT / "cmake" / "SdtuneCuda.cmake"
FOLDERS = ("model/kernels/cuda", "train/optim/cuda")
TYPES = {"6__half": "float16", "13__nv_bfloat16": "bfloat16", "f": "float32"}
FUSED = re.compile(r"\b(?:fma|mad)\.(?:r[nzmp]\.)?(?:ftz\.)?(?:sat\.)?f32\b")


@dataclass(frozen=True)
class Kernel:
    """One compiled kernel on one architecture."""

    name: str
    arch: str
    registers: int
    shared: int  # bytes of a block
    spilled: int  # bytes of a thread, stores and loads


def release_architectures() -> list[str]:
    """What a release is built for, as the build has it."""
    return re.search(r"SDTUNE_CUDA_RELEASE_LIST ([\d ]+)\)", ARCHITECTURES.read_text())[1].split()


def without_contraction() -> set[str]:
    """The sources that the build compiles with -fmad=false."""
    block = re.search(r"set_source_files_properties\(([^)]*?)TARGET_DIRECTORY sdtune_cuda PROPERTIES COMPILE_OPTIONS \"-fmad=false\"",
                      BUILD.read_text())[1]
    return set(re.findall(r"\$\{PROJECT_SOURCE_DIR\}/([\w/]+\.cu)", block))


def kernel_name(mangled: str) -> str:
    """A readable name: the function, its element types and its numbers of template arguments."""
    names = re.findall(r"(?=(\d+)([A-Za-z_]\w*))", mangled)
    function = [text[:int(size)] for size, text in names if len(text) >= int(size) and re.search(r"(kernel|_by_\w+)$", text[:int(size)])]
    if not function:
        return mangled
    arguments = mangled.split(function[-1], 1)[1]
    if not arguments.startswith("I"):
        return function[-1]
    words, at, last = [], 1, ""
    while at < len(arguments) and arguments[at] != "E":
        literal = re.match(r"L([ib])(\d+)E", arguments[at:])
        known = next((code for code in TYPES if arguments.startswith(code, at)), None)
        if literal:
            words.append(literal[2] if literal[1] == "i" else ("nhwc" if literal[2] == "1" else "nchw"))
            at += literal.end()
        elif known:
            last = TYPES[known]
            words.append(last)
            at += len(known)
        elif arguments[at] == "S":  # the type before again
            words.append(last)
            at = arguments.index("_", at) + 1
        else:
            break
    return f"{function[-1]}<{', '.join(words)}>"


def parse_ptxas(text: str) -> list[Kernel]:
    """The kernels that ptxas -v names."""
    kernels = []
    for part in text.split("Compiling entry function")[1:]:
        mangled, arch = re.search(r"'(\w+)' for 'sm_(\d+)'", part).groups()
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        used = re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        kernels.append(Kernel(kernel_name(mangled), arch, int(used[1]), int(shared[1]) if shared else 0, int(spills[1]) + int(spills[2])))
    return kernels


def parse_usage(text: str) -> list[Kernel]:
    """The kernels of a built library, from `cuobjdump -res-usage`. Stack and local memory of a thread count as spilled; the KiB that
    CUDA keeps of each block's shared memory, where it has any, is listed from sm_90 on and is not the kernel's."""
    kernels = []
    for part in text.split("\narch = sm_")[1:]:
        arch = re.match(r"\d+", part)[0]
        for mangled, used in re.findall(r"Function (\w+):\s+(REG:.*)", part):
            numbers = {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", used)}
            kept = 1024 if int(arch) >= 90 and numbers["SHARED"] > 0 else 0
            kernels.append(Kernel(kernel_name(mangled), arch, numbers["REG"], numbers["SHARED"] - kept, numbers["STACK"] + numbers["LOCAL"]))
    return kernels


def read_table(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Registers and shared memory by kernel and architecture, out of the document."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    architectures = [cell.removeprefix("sm_") for cell in lines[0][2:]]
    return {(line[0].strip("`"), arch): (int(registers), int(line[1]))
            for line in lines[2:] for arch, registers in zip(architectures, line[2:], strict=True)}


def nvcc() -> str:
    """The compiler that the build would take."""
    found = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if not found:
        raise SystemExit("ptxas_table: no nvcc: set CUDACXX, or pip install -r requirements/cuda.txt")
    return found


def compile_source(source: Path, architectures: list[str], contracts: bool, folder: Path) -> tuple[str, str]:
    """ptxas' report and the PTX of one source."""
    command = [nvcc(), "-std=c++20", "-O3", "-Xptxas", "-v", "-Xcompiler", "-fPIC", f"-I{ROOT}", "--keep", f"--keep-dir={folder}",
               "-c", str(source), "-o", str(folder / "kernel.o")]
    command += [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in architectures]
    if not contracts:
        command.append("-fmad=false")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"ptxas_table: {source.name} does not compile:\n{done.stderr[-2000:]}")
    ptx = "".join(path.read_text() for path in folder.glob(f"{source.stem}*.ptx"))
    return done.stderr, ptx


def faults_of(source: str, kernels: list[Kernel], ptx: str, contracts: bool) -> list[str]:
    """What is wrong with one compiled source."""
    faults = [f"{source}: {kernel.name} spills {kernel.spilled} bytes on {kernel.arch}" for kernel in kernels if kernel.spilled > 0]
    if not contracts:
        faults += [f"{source}: its PTX holds {found[0]}, and its bits would not be the CPU's" for found in FUSED.finditer(ptx)][:1]
    if not ptx:
        faults.append(f"{source}: no PTX was kept")
    return faults


def compile_all(architectures: list[str], sources: list[Path]) -> tuple[list[Kernel], list[str]]:
    """Every kernel on every architecture, and all faults."""
    kernels, faults = [], []
    exact = without_contraction()
    for source in sources:
        name = source.relative_to(ROOT).as_posix() if source.is_relative_to(ROOT) else source.name
        with tempfile.TemporaryDirectory() as folder:
            report, ptx = compile_source(source, architectures, name not in exact, Path(folder))
        found = parse_ptxas(report)
        kernels += found
        faults += faults_of(name, found, ptx, name not in exact)
    if not kernels:
        faults.append("ptxas names no kernel")
    return kernels, faults


def table_text(kernels: list[Kernel], architectures: list[str]) -> str:
    """The document: a row a kernel, registers a thread and bytes of shared memory a block."""
    rows: dict[str, dict[str, Kernel]] = {}
    for kernel in kernels:
        rows.setdefault(kernel.name, {})[kernel.arch] = kernel
    lines = ["# Registers and shared memory of the CUDA kernels", "",
             f"Written by `scripts/ptxas_table.py` with {version()}; blocks have 256 threads, and no kernel spills registers. A number",
             "in a name is how many numbers a thread takes at once.", "",
             "| kernel | shared memory, bytes |" + "".join(f" sm_{arch} |" for arch in architectures),
             "|---|---:|" + "---:|" * len(architectures)]
    for name, by_arch in sorted(rows.items()):
        shared = max(kernel.shared for kernel in by_arch.values())
        lines.append(f"| `{name}` | {shared} |" + "".join(f" {by_arch[arch].registers} |" for arch in architectures))
    return "\n".join(lines) + "\n"


def version() -> str:
    """The compiler's release."""
    text = subprocess.run([nvcc(), "--version"], capture_output=True, text=True, check=True).stdout
    return "nvcc " + re.search(r"V([\d.]+)", text)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--source", type=Path, action="append", help="this source instead of all (with --check)")
    parser.add_argument("architectures", nargs="*", help="without: those of a release")
    options = parser.parse_args()
    architectures = options.architectures or release_architectures()
    sources = options.source or sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.cu") if path.stem != "table")
    kernels, faults = compile_all(architectures, [source.resolve() for source in sources])
    print("\n".join(faults) if faults else f"ptxas: ok: {len(kernels)} kernels, at most {max(k.registers for k in kernels)} registers")
    if not faults and not options.check:
        TABLE.write_text(table_text(kernels, architectures))
        print(TABLE.relative_to(ROOT))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

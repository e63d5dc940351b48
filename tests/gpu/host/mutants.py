#!/usr/bin/env python3
"""Puts one mistake at a time into our CUDA kernels, and expects the checks of tests/gpu to find it on the CPU.

    mutants.py --compiler g++ --checks libsdtune_kernel_checks.a --kernels libsdtune_host_kernels_static.a [--only NAME]

A mistake is a replacement in one file. It counts as found where the checks fail with threads in rising or in falling order.
Exit 1 where one is not found, or where its text is no longer in the file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KERNELS, OPTIM = "model/kernels/cuda/", "train/optim/cuda/"


@dataclass(frozen=True)
class Mutant:
    """A mistake: `old` becomes `new`, the `index`-th time that it stands in the file; `check` is to find it."""

    name: str
    check: str
    file: str
    old: str
    new: str
    index: int = 0
    unit: str = ""  # the .cu that is compiled where `file` is a header

    def source(self) -> tuple[Path, str]:
        """The file to compile, and the changed text of `file`."""
        text = (ROOT / self.file).read_text()
        parts = text.split(self.old)
        if len(parts) < self.index + 2:
            raise SystemExit(f"mutants: {self.name}: {self.file} has no such text: {self.old}")
        changed = self.old.join(parts[:self.index + 1]) + self.new + self.old.join(parts[self.index + 1:])
        return ROOT / (self.unit or self.file), changed


FORWARD, BACKWARD = KERNELS + "group_norm_forward.cu", KERNELS + "group_norm_backward.cu"
SUM, WALK = KERNELS + "block_sum.cuh", KERNELS + "group_norm_walk.cuh"
MUTANTS = [
    # A barrier removed.
    Mutant("first barrier of block_sum", "group_norm", SUM, "  __syncthreads();\n  T sum", "  T sum", unit=FORWARD),
    Mutant("second barrier of block_sum", "group_norm", SUM, "  __syncthreads();  // partial", "  // partial", unit=BACKWARD),
    Mutant("barrier of the moments", "group_norm", FORWARD, "  __syncthreads();\n", "", 0),
    Mutant("barrier of the columns", "group_norm", FORWARD, "  __syncthreads();\n", "", 1),
    Mutant("barrier of the sums", "group_norm", BACKWARD, "  __syncthreads();\n", "", 0),
    Mutant("barrier of the gradient's columns", "group_norm", BACKWARD, "    __syncthreads();\n", "", 0),
    Mutant("barrier of the code book", "adamw_8bit", OPTIM + "adamw_8bit.cu", "  __syncthreads();\n", ""),
    Mutant("barrier of the updates", "adamw", OPTIM + "adamw.cu", "  __syncthreads();  // every", "  // every"),
    # A shuffle's offset halved.
    Mutant("offset of block_sum", "gradient_norm", SUM, "(0xFFFFFFFFu, value, offset)", "(0xFFFFFFFFu, value, offset / 2)",
           unit=OPTIM + "gradient_norm.cu"),
    Mutant("offset of the moments", "group_norm", FORWARD, "all.squares, offset)", "all.squares, offset / 2)"),
    Mutant("offset of the sums", "group_norm", BACKWARD, "dz_x[0], offset)", "dz_x[0], offset / 2)"),
    Mutant("offset of the largest magnitude", "adamw_8bit", OPTIM + "adamw_8bit.cu", "largest, offset)", "largest, offset / 2)"),
    # An index off by one.
    Mutant("gate of geglu", "geglu", KERNELS + "geglu.cu", "x + at + packs * kPack, gate", "x + at + packs * kPack - 1, gate"),
    Mutant("channel of the affine", "group_norm", FORWARD, "to_float(bias[channel])", "to_float(bias[channel > 0 ? channel - 1 : 0])"),
    Mutant("row of the draws", "random", KERNELS + "philox_normal.cu", "{3} * blockIdx.y", "{3} * (blockIdx.y + 1)"),
    Mutant("midpoint of the codes", "adamw_8bit", OPTIM + "adamw_8bit.cu", "below + step - 1", "below + step"),
    Mutant("tap of a channels_last weight", "adamw_8bit", OPTIM + "adamw_8bit.cu", "(i % taps) * channels", "((i + 1) % taps) * channels"),
    Mutant("sum of the last chunk", "gradient_norm", OPTIM + "gradient_norm.cu", "i < count;", "i + 1 < count;"),
    # A tail not masked.
    Mutant("tail of the draws", "random", KERNELS + "philox_normal.cu", " && block * 4 + i < row_size", ""),
    Mutant("tail of a slab", "group_norm", WALK, "slab_end < cut.spatial ? slab_end : cut.spatial", "slab_end", unit=FORWARD),
    Mutant("tail of a slab backward", "group_norm", WALK, "slab_end < cut.spatial ? slab_end : cut.spatial", "slab_end", unit=BACKWARD),
    Mutant("tail of a chunk", "adamw", OPTIM + "adamw_number.cuh", "rest < kChunkNumbers ? rest : kChunkNumbers", "kChunkNumbers",
           unit=OPTIM + "adamw.cu"),
    Mutant("tail lost", "adamw", OPTIM + "adamw.cu", "i = packs * kPack + threadIdx.x; i < place.count",
           "i = packs * kPack + threadIdx.x; i < packs * kPack"),
    Mutant("tail of a block of codes", "adamw_8bit", OPTIM + "adamw_8bit.cu", "if (!lane.has(i)) continue;", ""),
    Mutant("tail of a coded weight", "adamw_8bit", OPTIM + "adamw_8bit.cu",
           "if (lane.has(i)) to[place.of(lane.number(i))] = from_float<T>(from[i]);", "to[place.of(lane.number(i))] = from_float<T>(from[i]);"),
    Mutant("tail of geglu", "geglu", KERNELS + "geglu.cu", "i < count;", "i < count + 1;", 1),
    # The scale of a block shifted, and other mistakes of these kernels' own.
    Mutant("scale of a block", "adamw_8bit", OPTIM + "adamw_8bit.cu", "mean_codes, p.mean_scales + block)",
           "mean_codes, p.mean_scales + (block > 0 ? block - 1 : 0))"),
    Mutant("decoded by the next scale", "adamw_8bit", OPTIM + "adamw_8bit.cu", "square_scale = p.square_scales[block]",
           "square_scale = p.square_scales[block > 0 ? block - 1 : 0]"),
    Mutant("skip not obeyed", "adamw", OPTIM + "adamw.cu", "if (step->skip != 0) return;", ""),
    Mutant("skip not obeyed in 8 bits", "adamw_8bit", OPTIM + "adamw_8bit.cu", "if (step->skip != 0) return;", ""),
    Mutant("sums of x and x^2", "group_norm", FORWARD, "const float shifted = x[v] - pivot[v % walk.kChannels];", "const float shifted = x[v];"),
    Mutant("the offset forgotten", "group_norm", FORWARD, "const double exact_center = mean - offset;", "const double exact_center = mean;"),
    Mutant("device left as it was", "launch", KERNELS + "launch.cuh", "status_ = cudaSetDevice(device_)", "status_ = cudaSuccess",
           unit=KERNELS + "philox_normal.cu"),
]


def is_found(mutant: Mutant, options: argparse.Namespace, folder: Path) -> str | None:
    """None where the checks fail, else why the mutant counts as not found."""
    unit, text = mutant.source()
    changed = folder / "changed" / mutant.file
    changed.parent.mkdir(parents=True)
    changed.write_text(text)
    source = changed if unit == ROOT / mutant.file else unit
    flags = ["-std=c++20", "-O1", "-ffp-contract=off", f"-I{folder / 'changed'}", f"-I{ROOT}", f"-isystem{ROOT / 'tests/gpu/host'}"]
    program = folder / "checks"
    built = subprocess.run([options.compiler, *flags, "-x", "c++", str(source), "-x", "none", str(options.checks), str(options.kernels),
                            "-o", str(program)], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        return f"does not compile: {built.stderr[-400:]}"
    for order in ("ascending", "descending"):
        try:
            done = subprocess.run([str(program), mutant.check], capture_output=True, check=False, timeout=120,
                                  env=os.environ | {"SDTUNE_HOST_GPU_ORDER": order})
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
    return "the checks pass in both orders"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--checks", type=Path, required=True, help="archive of the checks, with main()")
    parser.add_argument("--kernels", type=Path, required=True, help="archive of the kernels for the CPU")
    parser.add_argument("--only", help="the mutant of this name")
    options = parser.parse_args()
    wanted = [mutant for mutant in MUTANTS if options.only in (None, mutant.name)]

    def run(mutant: Mutant) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            return is_found(mutant, options, Path(folder))

    with ThreadPoolExecutor(int(os.environ.get("SDTUNE_JOBS", os.cpu_count() or 1))) as pool:
        results = list(pool.map(run, wanted))
    survivors = 0
    for mutant, reason in zip(wanted, results, strict=True):
        survivors += reason is not None
        print(f"{'found   ' if reason is None else 'SURVIVED'} {mutant.check}: {mutant.name}{'' if reason is None else ': ' + reason}")
    print(f"mutants: {len(wanted) - survivors} of {len(wanted)} found")
    return 1 if survivors or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the product's own runs allocate on a GPU of which only the calls exist, beside what `sdtune plan` calculates. No GPU is needed.

    .venv/bin/python scripts/recorded_memory.py [PRESET ...]      writes its JSON and Markdown beside the other measurements

Needs a build with SDTUNE_CUDA=ON (build/gpu/operator_trace). Each preset runs at full size, with --device cuda:0: class images,
encoding, and steps of training, whose every allocation is counted (tests/gpu/recorded). Exit 1 where a phase takes more than the plan
says, or the highest one less, by more than BOUND. With names of presets nothing is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from operators.product import PHOTOS, ROOT, Product, is_built
from operators.record import Record
from operators.sd15 import write_sd15
from operators.sdxl import write_sdxl

TABLE = ROOT / "docs" / "measurements" / "recorded_memory.md"
NUMBERS = TABLE.with_suffix(".json")
SDTUNE = ROOT / "build" / "app" / "sdtune"
DRIVER = "driver and kernels (assumed)"  # of the plan: no allocation of LibTorch's
BOUND = 0.05  # of the plan
GIB = 1 << 30
# A step is counted when lists are on the device and kernels have proved themselves.
PHASES = {"generating class images": ("generating class images",), "encoding photos": ("encoding images",), "training": ("step 1", "step 2")}
FEW = {"num_class_images": 12, "class_num_inference_steps": 2}  # as much memory, less time


@dataclass(frozen=True)
class Case:
    """A preset and how it is asked for."""

    write_base: Callable[[Path], Path]
    file: str = ""  # a preset that --config names
    method: str = "full"

    def options(self) -> dict[str, object]:
        """For the recorded run, which takes options alone."""
        lines = (ROOT / "configs" / self.file).read_text().splitlines() if self.file else []
        return {"method": self.method, **dict(line.split(": ") for line in lines if line and line[0] != "#")}

    def words(self) -> list[str]:
        """For `sdtune plan`."""
        return ["--method", self.method, *(["--config", self.file] if self.file else [])]


CASES = {"full_sd15.yaml": Case(write_sd15), "full_sd15_16gb.yaml": Case(write_sd15, "full_sd15_16gb.yaml"),
         "lora_sdxl.yaml": Case(write_sdxl, method="lora")}


@dataclass(frozen=True)
class Row:
    """A phase of a preset, in bytes."""

    preset: str
    phase: str
    planned: int
    recorded: int

    @property
    def difference(self) -> float:
        return self.recorded / self.planned - 1

    @property
    def is_missed(self) -> bool:
        """A phase may be planned too large where another one decides what fits."""
        decides = self.phase in ("training", "the whole run")
        return self.difference > BOUND or (decides and self.difference < -BOUND)


def planned_phases(case: Case, base: Path) -> dict[str, int]:
    """Bytes by phase, as `sdtune plan` has them, without what it assumes for the driver; \"the whole run\" is the highest."""
    command = [str(SDTUNE), "plan", "--base", str(base), "--images", str(PHOTOS), "--mixed-precision", "bf16", "--savings", "false", "--json",
               *case.words()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    phases = {phase["name"]: sum(part["bytes"] for part in phase["parts"] if part["name"] != DRIVER)
              for phase in json.loads(done.stdout)["gpu"]["phases"]}
    return phases | {"the whole run": max(phases.values())}


def recorded_phases(record: Record) -> dict[str, int]:
    """The peak of each phase; of the whole run also of what lies between them."""
    phases = {phase: max(record[part].peak_bytes for part in parts) for phase, parts in PHASES.items()}
    return phases | {"the whole run": max(part.peak_bytes for part in record.values())}


def run_preset(product: Product, name: str, base: Path, **more: object) -> dict[str, int]:
    """Recorded bytes by phase."""
    return recorded_phases(product.train(base, steps=3, **FEW, **CASES[name].options(), **more))


def compare(product: Product, name: str, base: Path) -> list[Row]:
    recorded, planned = run_preset(product, name, base), planned_phases(CASES[name], base)
    return [Row(name, phase, planned[phase], bytes_) for phase, bytes_ in recorded.items()]


def write_table(rows: list[Row]) -> None:
    lines = [
        "# What runs allocate on a GPU, and what the plan says", "",
        "Written by `scripts/recorded_memory.py` on a machine without a GPU. The product's own runs went through class images, encoding and "
        "training at full size with the device cuda:0, of which only the calls exist (tests/gpu/recorded): every allocation was counted in "
        "blocks of 512 bytes, as LibTorch's allocator gives them out, and nothing was computed. The plan is `sdtune plan --json` with the same "
        "options, without the 0.88 GiB that it assumes for driver and kernels. Not counted on either side: what LibTorch's allocator keeps "
        "in reserve and its gaps, and workspaces of cuBLAS and cuDNN; the margin for them is that 0.88 GiB and 5 % of the card "
        "(train/config/preset_memory.h).", "",
        f"Bound: {BOUND:.0%} of the plan; class images and encoding may be planned larger than they are where another phase is the highest.", "",
        "| preset | phase | planned, GiB | recorded, GiB | difference |", "|---|---|---:|---:|---:|"]
    lines += [f"| {row.preset} | {row.phase} | {row.planned / GIB:.2f} | {row.recorded / GIB:.2f} | {row.difference:+.1%} |" for row in rows]
    TABLE.write_text("\n".join([*lines, ""]))
    numbers = [{"preset": row.preset, "phase": row.phase, "planned_bytes": row.planned, "recorded_bytes": row.recorded} for row in rows]
    NUMBERS.write_text(json.dumps({"command": "scripts/recorded_memory.py", "bound": BOUND, "rows": numbers}, indent=1) + "\n")


def main() -> int:
    """Counts, compares, writes."""
    chosen = sys.argv[1:] or list(CASES)
    if unknown := [name for name in chosen if name not in CASES]:
        print(f"recorded_memory: no such preset: {', '.join(unknown)} (allowed: {', '.join(CASES)})", file=sys.stderr)
        return 2
    if not is_built():
        print("recorded_memory: build/gpu/operator_trace is missing: build with SDTUNE_CUDA=ON", file=sys.stderr)
        return 2
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        product = Product(Path(folder))
        for name in chosen:
            base = Path(folder) / CASES[name].write_base.__name__
            rows += compare(product, name, base if base.exists() else CASES[name].write_base(base))
            for row in rows[-len(PHASES) - 1:]:
                print(f"{row.preset}: {row.phase}: planned {row.planned / GIB:.2f}, recorded {row.recorded / GIB:.2f} GiB, {row.difference:+.1%}",
                      flush=True)
    if chosen == list(CASES):
        write_table(rows)
    missed = [row for row in rows if row.is_missed]
    for row in missed:
        print(f"recorded_memory: {row.preset}: {row.phase} is {row.difference:+.1%} from the plan (allowed: {BOUND:.0%})", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The compiled inner loops of norms and GEGLU are vector code where a processor has AVX2 and no more: GCC leaves them scalar, three times as slow,
unless it may skip floating-point exceptions (model/CMakeLists.txt)."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from program import ROOT

BUILD = ROOT / "build"
KERNELS = {"group_norm_tiles": ("tile_apply", "tile_gradient_sums", "tile_gradient"), "geglu": ("forward_of", "backward_of")}
AVX2 = ".arch_x86_64_v3"


def functions_with_vector_division(code: Path) -> set[str]:
    """Of AVX2's clones: those that divide eight numbers at a time, as a sigmoid or a normal distribution of a vector does."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(code)], capture_output=True, text=True, check=True).stdout
    found = set()
    for part in re.split(r"\n(?=[0-9a-f]+ <)", listing):
        name = re.match(r"[0-9a-f]+ <(\S+)>:", part)
        if name and name[1].split(".part")[0].split(".constprop")[0].endswith(AVX2) and re.search(r"vdivps .*%ymm", part):
            found.add(name[1])
    return found


def lacking(code: Path, names: tuple[str, ...]) -> set[str]:
    """Of the functions of these names, float32's (..Kf..) and bfloat16's, those without it."""
    found = functions_with_vector_division(code)
    wanted = {(name, kind) for name in names for kind in ("PKf", "PKN3c108BFloat16E")}
    return {f"{name} {kind}" for name, kind in wanted if not any(f"{len(name)}{name}E{kind}" in one for one in found)}


def compiled_from(source: str) -> Path:
    (compiled,) = (path for path in BUILD.glob(f"model/**/{source}.cpp.o") if "gpu" not in path.parts)
    return compiled


@pytest.mark.parametrize("source", sorted(KERNELS))
def test_the_loops_of_avx2_are_vectors(source: str) -> None:
    assert lacking(compiled_from(source), KERNELS[source]) == set()


@pytest.mark.long
@pytest.mark.parametrize("source", sorted(KERNELS))
def test_they_are_scalar_without_the_option(source: str, tmp_path: Path) -> None:
    """Compiles the source anew, with LibTorch's headers."""
    compiled = compiled_from(source)
    commands = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", "-s", str(compiled.relative_to(BUILD))], capture_output=True, text=True,
                              check=True).stdout.splitlines()
    scalar = tmp_path / "scalar.o"
    words = [str(scalar) if word.endswith(f"{source}.cpp.o") else word for word in shlex.split(commands[-1]) if word != "-fno-trapping-math"]
    subprocess.run(words, cwd=BUILD, check=True)
    assert lacking(scalar, KERNELS[source])

"""What the CUDA library is built for, read out of the library itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from program import ROOT, SDTUNE

LIBRARY = SDTUNE.parent.parent / "lib" / "libsdtune_cuda.so"
WHEELS = Path(torch.__file__).parents[1] / "nvidia"


def cuobjdump(*options: str) -> str:
    """What cuobjdump says of the library; it comes with requirements/test.txt."""
    program = shutil.which("cuobjdump") or str(next(WHEELS.glob("*/bin/cuobjdump")))
    return subprocess.run([program, *options, str(LIBRARY)], capture_output=True, text=True, check=True).stdout


def release_list() -> list[str]:
    text = (ROOT / "cmake" / "SdtuneCudaBuild.cmake").read_text()
    return re.search(r"set\(SDTUNE_CUDA_RELEASE_LIST ([0-9 ]+)\)", text)[1].split()


def test_the_release_list_is_what_libtorch_supports() -> None:
    assert [f"sm_{number}" for number in release_list()] == torch._C._cuda_getArchFlags().split()


def test_the_library_holds_machine_code_for_every_architecture_and_ptx_for_later_ones() -> None:
    if not LIBRARY.is_file():
        pytest.skip("this build has no CUDA kernels: SDTUNE_CUDA=ON")
    listing = cuobjdump("--list-elf")
    assert set(re.findall(r"\.sm_(\d+)\.cubin", listing)) == set(release_list())
    # Every kernel file has them all: as many of one architecture as of another.
    counts = {number: listing.count(f".sm_{number}.cubin") for number in release_list()}
    assert len(set(counts.values())) == 1 and counts["75"] >= 5, counts
    assert set(re.findall(r"\.sm_(\d+)\.ptx", cuobjdump("--list-ptx"))) == {release_list()[-1]}


def fake_nvcc(folder: Path, release: str) -> Path:
    folder.mkdir()
    program = folder / "nvcc"
    program.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
    program.chmod(0o755)
    return program


def has_nvcc(environment: dict[str, str]) -> tuple[bool, str]:
    """scripts/setup.sh's own question, asked in this environment."""
    script = (ROOT / "scripts" / "setup.sh").read_text()
    functions = script[script.index("say() {"):script.index("find_cuda() {")].replace("/usr/local/cuda/bin/nvcc", "/nowhere/nvcc")
    ended = subprocess.run(["bash", "-c", f"set -euo pipefail\n{functions}\nhas_nvcc"], cwd=ROOT, capture_output=True, text=True,
                           env={"PATH": "/usr/bin:/bin", **environment}, check=False)
    return ended.returncode == 0, ended.stdout


def test_setup_passes_over_an_nvcc_of_another_cuda(tmp_path: Path) -> None:
    old, fitting = fake_nvcc(tmp_path / "old", "12.4"), fake_nvcc(tmp_path / "new", "13.0")
    assert has_nvcc({"CUDACXX": str(fitting)})[0]
    found, said = has_nvcc({"CUDACXX": str(old)})
    assert not found
    assert f"{old} is not CUDA 13 and is not used" in said


def test_the_build_names_the_nvcc_that_does_not_fit(tmp_path: Path) -> None:
    text = (ROOT / "cmake" / "SdtuneCuda.cmake").read_text()
    old = fake_nvcc(tmp_path / "old", "12.4")
    script = tmp_path / "find.cmake"
    chosen = text[text.index("# Of the toolkits at hand"):text.index("list(TRANSFORM cuda_sass")]
    chosen = chosen.replace("nvcc /usr/local/cuda/bin/nvcc", "").replace("${site_packages}", "/nowhere")
    script.write_text(f"set(SDTUNE_TORCH_CUDA_MAJOR 13)\n{chosen}\n")
    ended = subprocess.run([str(Path(sys.executable).parent / "cmake"), "-P", str(script)], capture_output=True, text=True,
                           env={"CUDACXX": str(old), "PATH": "/usr/bin:/bin"}, check=False)
    assert ended.returncode != 0
    assert f"{old} is release 12.4" in " ".join(ended.stderr.split())


def test_the_wheels_nvcc_finds_its_libraries_in_a_folder_with_a_space(tmp_path: Path) -> None:
    text = (ROOT / "cmake" / "SdtuneCuda.cmake").read_text()
    packages, build = tmp_path / "my packages", tmp_path / "my build"
    toolkit = packages / "nvidia" / "cu13"
    (toolkit / "lib").mkdir(parents=True)
    for name in ("libcudadevrt.a", "libcudart_static.a", "libcudart.so.13"):
        (toolkit / "lib" / name).write_text("")
    script = tmp_path / "flags.cmake"
    part = text[text.index("# The wheels' nvcc looks"):text.index("list(TRANSFORM cuda_sass")]
    script.write_text(f"""set(SDTUNE_TORCH_CUDA_MAJOR 13)
set(site_packages "{packages}")
set(CMAKE_BINARY_DIR "{build}")
set(CMAKE_CUDA_COMPILER "{toolkit}/bin/nvcc")
{part}
separate_arguments(words NATIVE_COMMAND "${{CMAKE_CUDA_FLAGS_INIT}}")
foreach(word ${{words}})
  message("<${{word}}>")
endforeach()
""")
    ended = subprocess.run([str(Path(sys.executable).parent / "cmake"), "-P", str(script)], capture_output=True, text=True, check=True)
    assert ended.stderr.split("\n")[0] == f"<-L{build}/cuda_wheel>"
    assert (build / "cuda_wheel" / "libcudart.so").is_symlink()

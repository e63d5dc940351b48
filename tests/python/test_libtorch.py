"""Another LibTorch beside ours: one that LD_LIBRARY_PATH names, as in NVIDIA's containers, is passed over, and one of another version in
the place of ours is refused in one line, by program and module."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from program import ROOT, run

import sdtune
from sdtune import _libtorch

TORCH = Path(torch.__file__).parent


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with sdtune and a link to torch."""
    folder = tmp_path / "site-packages"
    shutil.copytree(ROOT / "python" / "sdtune", folder / "sdtune")
    native = Path(sdtune._native.__file__)
    (folder / "sdtune" / native.name).symlink_to(native)
    (folder / "torch").symlink_to(TORCH)
    return folder


def other_torch(folder: Path, version: str) -> Path:
    """A package whose libraries are ours, and which says that it is of this version."""
    folder.mkdir()
    (folder / "lib").symlink_to(TORCH / "lib")
    (folder / "version.py").write_text(f"from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = '{version}'\n")
    return folder


def imports(site: Path, code: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A process that imports sdtune from there, after some code."""
    program = f"import sys\nsys.path.insert(0, {str(site)!r})\n{code}\nimport sdtune\nprint(sdtune.__file__)\nprint(open('/proc/self/maps').read())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **environment})


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder of libraries that cannot be loaded, under the names of ours."""
    folder = tmp_path / "broken"
    folder.mkdir()
    for name in _libtorch.LIBRARIES:
        (folder / name).write_text("")
    return folder


def test_the_version_is_that_of_the_build() -> None:
    assert f'VERSION_EQUAL "{_libtorch.VERSION}"' in (ROOT / "cmake" / "LibTorch.cmake").read_text()
    assert f"torch=={_libtorch.VERSION}" in (ROOT / "pyproject.toml").read_text()
    assert _libtorch.version_of(TORCH) == torch.__version__


def test_the_program_takes_its_own(broken: Path) -> None:
    ended = run(["--version"], LD_LIBRARY_PATH=str(broken))
    assert ended.returncode == 0 and ended.stdout.startswith("sdtune "), ended.stderr


def test_the_module_takes_its_own(site: Path, broken: Path) -> None:
    ended = imports(site, LD_LIBRARY_PATH=str(broken))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(site)) and f"{TORCH.resolve()}/lib/libtorch_cpu.so" in ended.stdout


@pytest.mark.parametrize("version", ["2.12.0+cu130", "2.11.1", "2.11.0a0+git70d99e9"])
def test_the_program_refuses_another_version(version: str, tmp_path: Path) -> None:
    """The program would start without the check, since functions are looked up when they are called, and end or compute nonsense later."""
    other = other_torch(tmp_path / "torch", version)
    ended = run(["schema"], LD_PRELOAD=str(other / "lib" / "libtorch_cpu.so"))
    assert ended.returncode == 2
    assert ended.stderr == f"sdtune: error: {other}: is torch {version}; sdtune was built with LibTorch 2.11.0; pip install torch==2.11.0\n"


def test_a_build_of_the_same_version_for_another_cuda_is_taken(tmp_path: Path) -> None:
    """torch==2.11.0 names it too, and its CPU part has the same ABI."""
    other = other_torch(tmp_path / "torch", "2.11.0+cpu")
    assert run(["schema"], LD_PRELOAD=str(other / "lib" / "libtorch_cpu.so")).returncode == 0


def test_kernels_that_it_does_not_fit_name_it(tmp_path: Path) -> None:
    other = other_torch(tmp_path / "torch", "2.11.0+cu128")
    (tmp_path / "libsdtune_cuda.so").write_text("")
    ended = run(["doctor", "--machine", "--json"], LD_PRELOAD=str(other / "lib" / "libtorch_cpu.so"),
                SDTUNE_CUDA_LIBRARY=str(tmp_path / "libsdtune_cuda.so"))
    kernels = json.loads(ended.stdout)["kernels"]
    if not kernels["built"]:
        pytest.skip("this build has no CUDA kernels: SDTUNE_CUDA=ON")
    assert kernels["fault"].startswith("our CUDA kernels do not load: ")
    assert kernels["fault"].endswith(" (torch 2.11.0+cu128 is installed, and its build for CUDA 13.0 is needed)")


def test_the_module_refuses_another_version(site: Path, tmp_path: Path) -> None:
    (site / "torch").unlink()
    other = other_torch(site / "torch", "2.12.0")
    ended = imports(site)
    said = f"ImportError: {other}: is torch 2.12.0; sdtune was built with LibTorch 2.11.0; pip install torch==2.11.0"
    assert ended.returncode == 1 and ended.stderr.splitlines()[-1] == said
    imported = imports(site, f"import types\nsys.modules['torch'] = other = types.ModuleType('torch')\n"
                             f"other.__version__, other.__file__ = '2.10.0+cu128', {str(tmp_path / 'its' / '__init__.py')!r}")
    assert f"ImportError: {tmp_path / 'its'}: is torch 2.10.0+cu128; " in imported.stderr.splitlines()[-1]


def test_a_torch_that_is_elsewhere_is_asked_for_here() -> None:
    """As where pip found torch==2.11.0 in the system's packages: the loader's words name a library and no way out."""
    said = _libtorch.explained(ImportError("libtorch_cpu.so: cannot open shared object file: No such file or directory"))
    assert re.fullmatch(r"libtorch_cpu\.so: .* directory: sdtune looks for torch 2\.11\.0 beside itself, in /\S+/torch; "
                        r"pip install --ignore-installed torch==2\.11\.0 puts it there", said)
    assert _libtorch.explained(ImportError("cannot import name '_native'")) == "cannot import name '_native'"

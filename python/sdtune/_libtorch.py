"""LibTorch for `_native`: the one of the package torch beside this one, of the version that it was built with. Imported before `_native`.

The C++ ABI is that of one version. pip puts another torch in its place where a package that is installed later asks for it, and
LD_LIBRARY_PATH, which comes ahead of the run path of `_native`, names the folder of another one in NVIDIA's containers. The program
`sdtune` does the same (app/CMakeLists.txt, model/core/libtorch_version.cpp).
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

VERSION = "2.11.0"  # cmake/LibTorch.cmake
LIBRARIES = ("libgomp.so.1", "libc10.so", "libtorch_cpu.so")  # each after those that it needs


def package() -> Path:
    """Where the package torch lies; in a build folder, which has LibTorch's path, nothing does."""
    return Path(os.path.abspath(__file__)).parents[1] / "torch"


def version_of(folder: Path) -> str:
    """As the package says, "2.11.0+cu130"; "" where it says nothing."""
    try:
        found = re.search(r"^__version__ = '(.*)'", (folder / "version.py").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1] if found else ""


def check_version() -> None:
    """Raises ImportError where the torch that this process has imported, or the one beside this package, is another one."""
    imported = sys.modules.get("torch")
    folder = Path(str(getattr(imported, "__file__", ""))).parent if imported else package()
    found = str(getattr(imported, "__version__", "")) or version_of(folder)
    if found and found.partition("+")[0] != VERSION:
        raise ImportError(f"{folder}: is torch {found}; sdtune was built with LibTorch {VERSION}; pip install torch=={VERSION}")


def load() -> None:
    """Refuses another version, and loads LibTorch by its own path where LD_LIBRARY_PATH may name another one."""
    check_version()
    if not os.environ.get("LD_LIBRARY_PATH") or "torch" in sys.modules:
        return
    files = [package() / "lib" / name for name in LIBRARIES]
    if all(file.is_file() for file in files):
        import ctypes  # here, since it takes longer to load than the rest
        for file in files:
            ctypes.CDLL(str(file))


def explained(error: ImportError) -> str:
    """What an import of `_native` says, and where it looked for LibTorch if that is what it lacks."""
    if "libtorch_cpu.so" not in str(error) and "libc10.so" not in str(error):
        return str(error)
    return (f"{error}: sdtune looks for torch {VERSION} beside itself, in {package()}; "
            f"pip install --ignore-installed torch=={VERSION} puts it there")

#!/usr/bin/env python3
"""Makes a tarball with the program and every library that it needs, which runs without Python and pip.

    scripts/release/tarball.py WHEEL OUTPUT_FOLDER [--torch FOLDER]

WHEEL is one that scripts/release.sh built; FOLDER the folder `torch` of the LibTorch that it was built with (default: this
Python's). Unpacked anywhere, bin/sdtune runs: the folders lie as pip lays them out, and all run paths are relative. Of LibTorch
the CPU's part comes along; a wheel for CUDA takes its GPU part and NVIDIA's libraries too. Prints the file's name.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

# Of LibTorch's lib folder, what the program loads.
CPU_LIBRARIES = ("libc10.so", "libgomp.so.1", "libtorch_cpu.so")
CUDA_LIBRARIES = ("libc10_cuda.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so")
# Of NVIDIA's wheels, what libtorch_cpu itself asks for.
CPU_NVIDIA = ("libcudart.so.*", "libcupti.so.*")
PROGRAM_NAMES = ("sdtune", "sdtune-faces")


def find_torch() -> Path:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        sys.exit("tarball: no torch in this Python: name its folder with --torch")
    return Path(found.origin).parent


def lay_out_wheel(wheel: Path, root: Path) -> str:
    """Unpacks a wheel as pip does, without Python's files. Returns its version."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root)
    (information,) = root.glob("*.dist-info")
    (data,) = root.glob("*.data")
    version = information.name.removeprefix("sdtune-").removesuffix(".dist-info")
    shutil.move(data / "scripts", root / "bin")
    shutil.move(data / "data" / "share", root / "share")
    for name in PROGRAM_NAMES:
        if (root / "bin" / name).is_file():
            (root / "bin" / name).chmod(0o755)
    (root / "licenses").mkdir()
    shutil.move(information / "licenses" / "LICENSE", root / "licenses" / "sdtune.txt")
    for text in (root / "sdtune" / "lib" / "licenses").iterdir():
        shutil.move(text, root / "licenses" / text.name)
    shutil.rmtree(root / "sdtune" / "lib" / "licenses")
    shutil.rmtree(data)
    shutil.rmtree(information)
    for path in (root / "sdtune").iterdir():
        if path.name != "lib":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return version


def copy_libtorch(torch: Path, root: Path, has_cuda: bool) -> None:
    """LibTorch and NVIDIA's libraries, where their own run paths look for each other."""
    (root / "torch" / "lib").mkdir(parents=True)
    for name in CPU_LIBRARIES + (CUDA_LIBRARIES if has_cuda else ()):
        if not (torch / "lib" / name).is_file() and name not in CPU_LIBRARIES:
            continue  # an optional part
        shutil.copyfile(torch / "lib" / name, root / "torch" / "lib" / name)
    nvidia = torch.parent / "nvidia"
    found = {path for pattern in (("*.so*",) if has_cuda else CPU_NVIDIA) for path in nvidia.glob(f"*/lib/{pattern}")}
    for path in sorted(found):
        copy = root / path.relative_to(torch.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for information in sorted(torch.parent.glob("*.dist-info")):
        if information.name.startswith("torch-") or (has_cuda and information.name.startswith("nvidia_")) \
                or information.name.startswith(("nvidia_cuda_runtime", "nvidia_cuda_cupti")):
            copy_licences(information, root)


def copy_licences(information: Path, root: Path) -> None:
    """The texts that a package lists among its files, if others of them came along: beside its metadata, or beside its libraries as
    cuSPARSELt's."""
    listed = [Path(line.split(",")[0]) for line in (information / "RECORD").read_text().splitlines()]
    texts = [path for path in listed if path.name.upper().startswith(("LICENSE", "NOTICE"))]
    package = information.name.partition("-")[0]
    if not any((root / path).is_file() for path in listed):
        return
    if not texts:
        sys.exit(f"tarball: {package} has no licence that could come along")
    for text in texts:
        target = root / "licenses" / f"{package}-{text.name}.txt"
        if target.exists():  # another one of the same package
            target = root / "licenses" / f"{package}-{'-'.join(text.parts[1:])}.txt"
        shutil.copyfile(information.parent / text, target)


def pack(root: Path, target: Path) -> None:
    """A .tar.gz whose bytes depend on the content alone."""
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
        return entry

    with tempfile.NamedTemporaryFile(suffix=".tar") as plain_file:
        with tarfile.open(fileobj=plain_file, mode="w") as archive:
            archive.add(root, arcname=root.name, filter=plain)
        plain_file.flush()
        with target.open("wb") as file:
            compressor = "pigz" if shutil.which("pigz") else "gzip"
            subprocess.run([compressor, "-n", "-6", "-c", plain_file.name], stdout=file, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--torch", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "sdtune"
        version = lay_out_wheel(options.wheel, root)
        name = f"sdtune-{version}-linux-{platform.machine()}"
        copy_libtorch(options.torch or find_torch(), root, has_cuda=(root / "sdtune" / "lib" / "libsdtune_cuda.so").is_file())
        root = root.rename(root.parent / name)
        options.output.mkdir(parents=True, exist_ok=True)
        pack(root, options.output / f"{name}.tar.gz")
    print(options.output / f"{name}.tar.gz")


if __name__ == "__main__":
    main()

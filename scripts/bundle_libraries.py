#!/usr/bin/env python3
"""Copies the system libraries that sdtune needs into its package folder, so that a wheel runs on machines without them.

    scripts/bundle_libraries.py STAGED_PACKAGE [PROGRAM ...]

STAGED_PACKAGE is the folder `sdtune` that holds _native*.so; the libraries go to its `lib`. Each gets a name of its
own (libcrypto-1a2b3c4d.so.3), because the interpreter may have loaded another version under the plain name. What every
Linux has (glibc, libstdc++, zlib) and what torch's wheel carries stays outside.

Beside them goes `bundled.json`: of each library its file, soname, and the Debian package and version that it is from; and
`licenses/PACKAGE.txt`, each package's copyright file, also of those whose headers are compiled in.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Part of every Linux that pip's manylinux wheels run on, or of torch's wheel.
OUTSIDE = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s|z|c10|torch\w*|gomp))\.so(\.\d+)*$")

# Debian's packages of headers that are compiled in; and of the cascades, which need not be there.
COMPILED_IN = ("libcli11-dev", "libfmt-dev", "nlohmann-json3-dev")
CASCADES = "opencv-data"


def output_of(*command: str | Path) -> str:
    """Standard output; an error of the command ends the script with its text."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"bundle_libraries: {' '.join(str(part) for part in command)}: {result.stderr.strip()}")
    return result.stdout


def needed_by(binary: Path) -> list[str]:
    """The sonames it asks for directly."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "--dynamic", binary))


def found_paths(binary: Path) -> dict[str, Path]:
    """soname -> file, of everything the dynamic linker would load for it."""
    return {match[1]: Path(match[2]).resolve()
            for match in re.finditer(r"^\s*(\S+) => (/\S+)", output_of("ldd", binary), re.MULTILINE)}


class Bundle:
    """The libraries to carry, found from the binaries that need them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, Path] = {}   # soname -> the file on this machine
        self.names: dict[str, str] = {}    # soname -> its name in the wheel

    def collect(self, binary: Path) -> None:
        """Adds all that `binary` needs, over any number of steps."""
        paths = found_paths(binary)
        waiting = needed_by(binary)
        while waiting:
            name = waiting.pop()
            if OUTSIDE.match(name) or name in self.files:
                continue
            if name not in paths:
                sys.exit(f"bundle_libraries: {binary} needs {name}, which is not on this machine")
            self.files[name] = paths[name]
            waiting += needed_by(paths[name])

    def copy(self) -> None:
        """Copies the libraries under their new names and points them at each other."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, path in self.files.items():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
            stem, _, version = name.partition(".so")
            self.names[name] = f"{stem}-{digest}.so{version}"
        for name, path in self.files.items():
            copy = self.folder / self.names[name]
            shutil.copyfile(path, copy)
            copy.chmod(0o755)
            output_of("patchelf", "--set-soname", self.names[name], copy)
            self.redirect(copy, "$ORIGIN")

    def redirect(self, binary: Path, run_path: str) -> None:
        """Makes a binary ask for the carried libraries by their new names. (patchelf 0.14 mixes up several kinds of
        change in one call.)"""
        for name in needed_by(binary):
            if name in self.names:
                output_of("patchelf", "--replace-needed", name, self.names[name], binary)
        # patchelf makes a RUNPATH of a RPATH, behind which LD_LIBRARY_PATH comes (app/CMakeLists.txt).
        kind = ["--force-rpath"] if "(RPATH)" in output_of("readelf", "--dynamic", binary) else []
        output_of("patchelf", *kind, "--set-rpath", run_path, binary)


def package_of(path: Path) -> tuple[str, str]:
    """Name and version of the Debian package that a file is from; ("", "") where it is from none."""
    for candidate in (path, Path("/usr") / path.relative_to("/"), Path(str(path).removeprefix("/usr"))):
        found = subprocess.run(["dpkg-query", "--search", str(candidate)], capture_output=True, text=True)
        if found.returncode == 0:
            name = found.stdout.splitlines()[0].rpartition(": ")[0].split(",")[0]
            return name.partition(":")[0], output_of("dpkg-query", "--show", "--showformat", "${Version}", name)
    return "", ""


def copy_licence(package: str, licenses: Path) -> None:
    """The copyright file of a Debian package."""
    text = Path("/usr/share/doc") / package / "copyright"
    if not text.is_file():
        sys.exit(f"bundle_libraries: {package} has no licence that could come along ({text} is missing)")
    shutil.copyfile(text, licenses / f"{package}.txt")


def write_licence_of_pybind11(licenses: Path) -> None:
    """Its headers are those of a Python package, or of Debian's."""
    try:
        files = importlib.metadata.distribution("pybind11").files or []
    except importlib.metadata.PackageNotFoundError:
        copy_licence("pybind11-dev", licenses)
        return
    texts = [Path(str(file.locate())) for file in files if file.name.startswith("LICENSE")]
    if not texts:
        sys.exit("bundle_libraries: pybind11 has no licence that could come along")
    shutil.copyfile(texts[0], licenses / "pybind11.txt")


def write_origins(bundle: Bundle) -> None:
    """What the libraries are and under which terms they come."""
    licenses = bundle.folder / "licenses"
    licenses.mkdir(exist_ok=True)
    libraries = []
    for soname, path in sorted(bundle.files.items()):
        package, version = package_of(path)
        libraries.append({"file": bundle.names[soname], "soname": soname, "package": package, "version": version})
        if not package:
            sys.exit(f"bundle_libraries: {path} has no licence that could come along (it is of no package)")
        copy_licence(package, licenses)
    for package in (*COMPILED_IN, *([CASCADES] if Path("/usr/share/doc", CASCADES).is_dir() else [])):
        copy_licence(package, licenses)
    write_licence_of_pybind11(licenses)
    (bundle.folder / "bundled.json").write_text(json.dumps({"libraries": libraries}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("programs", type=Path, nargs="*")
    options = parser.parse_args()
    modules = sorted(options.package.glob("_native*.so"))
    if not modules:
        sys.exit(f"bundle_libraries: no _native*.so in {options.package}")
    bundle = Bundle(options.package / "lib")
    for binary in [*modules, *options.programs]:
        bundle.collect(binary)
    bundle.copy()
    for binary in [*modules, *options.programs]:
        bundle.redirect(binary, output_of("patchelf", "--print-rpath", binary).strip())
    write_origins(bundle)
    size = sum(path.stat().st_size for path in bundle.folder.rglob("*.so*"))
    print(f"bundle_libraries: {len(bundle.files)} libraries, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

"""The wheel: built once from the build folder, installed into an environment of its own, used there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
# What may be taken from the system: glibc, the C++ runtime, zlib; and from torch's wheel.
ALLOWED = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s|z|c10|torch_cpu|gomp))\.so(\.\d+)*$")
# What our CUDA kernels find loaded: torch's wheel and the wheels it depends on.
ALLOWED_CUDA = re.compile(r"^lib(torch_cuda|c10_cuda|cudart)\.so(\.\d+)*$")
CARRIERS = ("torch", "torchgen", "nvidia", "numpy", "numpy.libs")


def run(*command: object, **options: object) -> str:
    """Standard output of a command that must succeed."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
    return result.stdout


def cached(build: Path, name: str) -> str | None:
    """A value of the build folder's CMake cache; None where nothing was built yet."""
    cache = build / "CMakeCache.txt"
    found = re.search(rf"^{name}:\w+=(.*)$", cache.read_text(), re.MULTILINE) if cache.is_file() else None
    return found and found[1]


def same_options(build: Path) -> list[str]:
    """What pyproject.toml sets of the build, set as the build folder has it: another warning flag compiles all anew."""
    defines = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["cmake"]["define"]
    kept = {name: cached(build, name) for name in defines}
    return [word for name, value in kept.items() if value is not None for word in ("-C", f"cmake.define.{name}={value}")]


pytestmark = pytest.mark.timeout(1800)  # a build from nothing takes longer than a test may


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The wheel. It takes what the build folder has compiled already; from nothing the same command compiles all."""
    folder = tmp_path_factory.mktemp("wheel")
    build = Path(os.environ.get("SDTUNE_BUILD_DIR", ROOT / "build"))
    prefix = cached(build, "CMAKE_INSTALL_PREFIX")
    tools = Path(sys.executable).parent
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, "-C", f"build-dir={build}",
        *same_options(build), ROOT, env=os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"})
    (built,) = folder.glob("*.whl")
    yield built
    if prefix is not None:  # as it was for whoever installs from it next
        run(tools / "cmake", "-U", "SKBUILD*", f"-DCMAKE_INSTALL_PREFIX={prefix}", build)


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; torch and NumPy are lent by this one, since they are 4 GB."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps", "--no-index",
        wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    import torch
    for name in CARRIERS:
        lent = Path(torch.__file__).parents[1] / name
        if lent.exists():
            (packages / name).symlink_to(lent)
    return folder


def test_it_carries_what_it_needs_and_nothing_of_this_machine(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
        (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        text = archive.read(metadata).decode()
    assert "Requires-Dist: torch==2.11.0" in text and "Requires-Dist: numpy" in text
    (program,) = tmp_path.glob("sdtune-*.data/scripts/sdtune")
    binaries = [*tmp_path.glob("sdtune/*.so"), *tmp_path.glob("sdtune/lib/*.so*"), program]
    carried = {path.name for path in binaries}
    assert len(binaries) > 5
    for binary in binaries:
        dynamic = run("readelf", "--dynamic", binary)
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        strays = [name for name in needed if name not in carried and not ALLOWED.match(name)]
        if binary.name == "libsdtune_cuda.so":
            strays = [name for name in strays if not ALLOWED_CUDA.match(name)]
        assert not strays, f"{binary.name} needs {strays}"
        for run_path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
            assert all(part.startswith("$ORIGIN") for part in run_path.split(":")), f"{binary.name}: {run_path}"
    assert "(RPATH)" in run("readelf", "--dynamic", program), "a RUNPATH comes behind LD_LIBRARY_PATH (test_libtorch.py)"
    for name in ("sdtune/__init__.pyi", "sdtune/_native.pyi", "sdtune/py.typed"):
        assert (tmp_path / name).is_file()
    assert list(tmp_path.glob("sdtune-*.data/data/share/sdtune/configs/*.yaml"))
    assert list(tmp_path.glob("sdtune-*.data/data/share/sdtune/configs/prompts/portraits.yaml"))
    print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB, {len(binaries)} binaries")


def test_each_library_that_it_carries_has_its_origin_and_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = json.loads(archive.read("sdtune/lib/bundled.json"))["libraries"]
        carried = {name.removeprefix("sdtune/lib/") for name in names if re.match(r"sdtune/lib/[^/]+\.so", name)}
        assert {one["file"] for one in libraries} == carried - {"libsdtune_cuda.so"}
        for one in libraries:
            text = archive.read(f"sdtune/lib/licenses/{one['package']}.txt").decode(errors="replace")
            assert one["version"] and re.search("copyright", text, re.IGNORECASE), one
        for package in ("libcli11-dev", "libfmt-dev", "nlohmann-json3-dev", "opencv-data", "pybind11"):  # compiled in, or a file of its own
            assert re.search("copyright", archive.read(f"sdtune/lib/licenses/{package}.txt").decode(errors="replace"), re.IGNORECASE)
    assert {"libopencv-core406", "libssl3", "libyaml-cpp0.7"} <= {one["package"] for one in libraries}


def test_the_bill_of_materials_lists_it_all(wheel: Path) -> None:
    """SPDX 2.3: identifiers once each, relationships between what is there, everything that comes along contained."""
    found = json.loads(run(sys.executable, ROOT / "scripts/release/sbom.py", wheel))
    packages = {one["SPDXID"]: one for one in found["packages"]}
    assert found["spdxVersion"] == "SPDX-2.3" and len(packages) == len(found["packages"])
    known = packages.keys() | {"SPDXRef-DOCUMENT"}
    assert all({link["spdxElementId"], link["relatedSpdxElement"]} <= known for link in found["relationships"])
    contained = {packages[link["relatedSpdxElement"]]["name"] for link in found["relationships"] if link["relationshipType"] == "CONTAINS"}
    with zipfile.ZipFile(wheel) as archive:
        libraries = json.loads(archive.read("sdtune/lib/bundled.json"))["libraries"]
    assert contained == {one["package"] for one in libraries} | {folder.name for folder in (ROOT / "models").iterdir() if folder.is_dir()}
    needed = {packages[link["relatedSpdxElement"]]["comment"] for link in found["relationships"] if link["relationshipType"] == "DEPENDS_ON"}
    assert needed == {"torch==2.11.0", "numpy>=1.26"}


def test_the_bill_of_a_tarball_has_libtorch_as_contained(wheel: Path, tmp_path: Path) -> None:
    """Its digest and name are the tarball's; LibTorch and NVIDIA's libraries are those of the packages that their files are from."""
    import torch
    packages = Path(torch.__file__).parents[1]
    tarball = tmp_path / "sdtune-linux.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        for path in (packages / "torch/lib/libc10.so", *packages.glob("nvidia/*/lib/libcudart.so.*")):
            archive.add(path, f"sdtune/{path.relative_to(packages)}")
    found = json.loads(run(sys.executable, ROOT / "scripts/release/sbom.py", wheel, "--tarball", tarball))
    own = found["packages"][0]
    assert own["packageFileName"] == tarball.name
    assert own["checksums"][0]["checksumValue"] == hashlib.sha256(tarball.read_bytes()).hexdigest()
    versions = {one["name"]: one["versionInfo"] for one in found["packages"]}
    assert versions["torch"] == "2.11.0" and versions["nvidia-cuda-runtime"].startswith("13.0.") and "numpy" not in versions
    assert {link["relationshipType"] for link in found["relationships"]} == {"DESCRIBES", "CONTAINS"}


def test_the_c_library_that_it_needs_is_told(wheel: Path) -> None:
    command = (sys.executable, ROOT / "scripts/release/c_library.py", wheel)
    (version,) = re.findall(r" needs GLIBC ([0-9.]+) ", run(*command))
    own = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    numbers = [tuple(map(int, text.split("."))) for text in ("2.17", version, own)]
    assert numbers == sorted(numbers)
    run(*command, "--most", own)
    assert subprocess.run([*map(str, command), "--most", "2.16"], capture_output=True, check=False).returncode == 1


def written(packages: Path, information: str, *files: str) -> None:
    """A package as pip installs it: its files, and their list."""
    for name in files:
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(name)
    (packages / information).mkdir(exist_ok=True)
    (packages / information / "RECORD").write_text("".join(f"{name},sha256=abc,1\n" for name in files))


def test_a_tarball_has_the_licence_of_each_package_that_it_carries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuSPARSELt's lies beside its library, the others' beside their metadata; of a compiler that stays behind none is needed."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "release"))
    import tarball
    packages, root = tmp_path / "site-packages", tmp_path / "sdtune"
    written(packages, "torch-2.11.0.dist-info", *(f"torch/lib/{name}" for name in tarball.CPU_LIBRARIES),
            "torch-2.11.0.dist-info/licenses/LICENSE", "torch-2.11.0.dist-info/licenses/NOTICE", "torch-2.11.0.dist-info/licenses/more/LICENSE")
    written(packages, "nvidia_cusparselt_cu13-0.8.0.dist-info", "nvidia/cusparselt/LICENSE.txt", "nvidia/cusparselt/lib/libcusparseLt.so.0")
    written(packages, "nvidia_cuda_nvcc-13.0.88.dist-info", "nvidia/cu13/bin/nvcc")
    (root / "licenses").mkdir(parents=True)
    tarball.copy_libtorch(packages / "torch", root, has_cuda=True)
    assert sorted(path.name for path in (root / "licenses").iterdir()) == [
        "nvidia_cusparselt_cu13-LICENSE.txt.txt", "torch-LICENSE.txt", "torch-NOTICE.txt", "torch-licenses-more-LICENSE.txt"]
    written(packages, "nvidia_nccl_cu13-2.28.9.dist-info", "nvidia/nccl/lib/libnccl.so.2")
    (tmp_path / "other" / "licenses").mkdir(parents=True)
    with pytest.raises(SystemExit, match="nvidia_nccl_cu13 has no licence"):
        tarball.copy_libtorch(packages / "torch", tmp_path / "other", has_cuda=True)


@pytest.mark.long
def test_the_tarball_runs_without_python(wheel: Path, tmp_path: Path) -> None:
    """Unpacked anywhere, with an empty environment; every library is the tarball's or the C library's."""
    stripped = tmp_path / "cpu" / wheel.name
    stripped.parent.mkdir()
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(stripped, "w") as part:  # the kernels would bring 3 GB of NVIDIA's
        for entry in whole.infolist():
            if not entry.filename.endswith("libsdtune_cuda.so"):
                part.writestr(entry, whole.read(entry.filename))
    tarball = Path(run(sys.executable, ROOT / "scripts/release/tarball.py", stripped, tmp_path).strip())
    run("tar", "-xzf", tarball, "-C", tmp_path)
    (root,) = tmp_path.glob("sdtune-*-linux-*/")
    program, clean = root / "bin/sdtune", {"OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    found = re.findall(r"=> (/\S+)", run("ldd", program, env=clean))
    strays = [path for path in found if not path.startswith(f"{root}/") and not ALLOWED.match(Path(path).name)]
    assert len(found) > 10 and not strays, strays
    assert run(program, "--version", env=clean).startswith("sdtune 0.")
    run(program, "demo", "--output", tmp_path / "run", "--device", "cpu", "--", "--max-train-steps", 1, "--num-class-images", 1,
        "--class-num-inference-steps", 2, env=clean)
    assert (tmp_path / "run" / "sheet.png").is_file()
    assert {"sdtune.txt", "libssl3.txt"} <= {path.name for path in (root / "licenses").iterdir()}


def test_it_works_in_an_environment_of_its_own(environment: Path, tiny_sd1: Path) -> None:
    photo = ROOT / "examples/backpack_dog/00.jpg"
    program = textwrap.dedent(f"""
        import sys, sdtune
        assert sdtune.__file__.startswith({str(environment)!r}), sdtune.__file__
        assert sdtune.load_image({str(photo)!r}).shape[2] == 3
        pipe = sdtune.StableDiffusionPipeline.from_pretrained({str(tiny_sd1)!r})
        images = pipe("a cat", num_inference_steps=2, output_type="np").images
        assert images.shape == (1, 32, 32, 3) and "torch" not in sys.modules
        carried = [line.split()[-1] for line in open("/proc/self/maps") if "opencv" in line]
        assert carried and all("/sdtune/lib/" in path for path in carried), carried
    """)
    run(environment / "bin/python", "-c", program, env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"})


def test_the_program_comes_with_it(environment: Path, tiny_sd1: Path) -> None:
    clean = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    assert "train" in run(environment / "bin/sdtune", "--help", env=clean)
    assert "UNet2DConditionModel" in run(environment / "bin/sdtune", "inspect", tiny_sd1, env=clean)


@pytest.fixture(scope="module")
def kernel(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Jupyter kernel of the wheel's environment; ipykernel and Pillow are lent, behind its own packages."""
    import ipykernel
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(f"{Path(ipykernel.__file__).parents[1]}\n")
    folder = tmp_path_factory.mktemp("jupyter")
    spec = folder / "kernels/wheel/kernel.json"
    spec.parent.mkdir(parents=True)
    words = [str(environment / "bin/python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": words, "display_name": "wheel", "language": "python"}))
    before = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = str(folder)
    yield "wheel"
    os.environ.pop("JUPYTER_PATH") if before is None else os.environ.update(JUPYTER_PATH=before)


def test_the_first_notebook_runs_on_the_wheel_alone(environment: Path, kernel: str, tiny_sd1: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples/notebooks/first_portrait.ipynb", as_version=4)
    (at,) = [index for index, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    settings = {"base": str(tiny_sd1), "photos": str(ROOT / "examples/backpack_dog"), "steps": 6, "output": str(tmp_path / "run")}
    notebook.cells.insert(at + 1, nbformat.v4.new_code_cell("\n".join(f"{name} = {value!r}" for name, value in settings.items())))
    origin = nbformat.v4.new_code_cell("print(sdtune.__file__, result.step)")
    notebook.cells.append(origin)
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, kernel_name=kernel, timeout=240, resources=place).execute()
    file, step = origin.outputs[0]["text"].split()
    assert file.startswith(str(environment)) and step == "6", "the wheel's module trained"
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in data for data in shown)
    assert (tmp_path / "run/model/model_index.json").is_file()

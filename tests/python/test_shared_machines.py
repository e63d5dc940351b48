"""Programs that share cores: libgomp's spin is bounded before it is loaded, and what the user set wins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from program import ROOT, SDTUNE, run

# A bound for each maker of processors.
BOUND = "1000" if "AuthenticAMD" in Path("/proc/cpuinfo").read_text() else "3000"
CLEARED = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")
LIBGOMP = "next(p for p in (pathlib.Path(u.find_spec('torch').origin).parent / 'lib').iterdir() if p.name.startswith('libgomp'))"
LOAD_LIBGOMP = f"import ctypes, importlib.util as u, pathlib; ctypes.CDLL(str({LIBGOMP}))\n"


def environment(**settings: str) -> dict[str, str]:
    """This process's environment without the variables in question, with libgomp printing what it took."""
    kept = {name: value for name, value in os.environ.items() if name not in CLEARED}
    return {**kept, "OMP_DISPLAY_ENV": "verbose", **settings}


def start(words: list[str], **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(words, env=environment(**settings), capture_output=True, text=True, timeout=120, check=False)


def spin_count(text: str) -> str:
    """What libgomp says it took."""
    return re.search(r"GOMP_SPINCOUNT = '(\w+)'", text)[1]


def python(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code with the package that this process would import."""
    import sdtune
    package = str(Path(sdtune.__file__).parent.parent)
    return start([sys.executable, "-W", "always", "-c", code], PYTHONPATH=package, **settings)


@pytest.mark.parametrize(("settings", "count"), [({}, BOUND), ({"GOMP_SPINCOUNT": "77"}, "77"),
                                                 ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")])
def test_program_bounds_the_spin_unless_the_user_has(settings: dict[str, str], count: str) -> None:
    done = start([str(SDTUNE), "--version"], **settings)
    assert done.returncode == 0
    assert spin_count(done.stderr) == count
    # Once: libgomp prints as often as it is loaded.
    assert done.stderr.count("GOMP_SPINCOUNT") == 1


def test_program_keeps_its_words_and_its_name(tmp_path: Path) -> None:
    words = ["inspect", str(tmp_path / "two words"), ""]
    bounded, unchanged = start([str(SDTUNE), *words]), start([str(SDTUNE), *words], GOMP_SPINCOUNT=BOUND)
    assert bounded.returncode == unchanged.returncode == 2
    last = [done.stderr.splitlines()[-1] for done in (bounded, unchanged)]
    assert last[0] == last[1]
    assert last[0].startswith("sdtune: error:")


def test_program_starts_through_the_dynamic_loader() -> None:
    # There /proc/self/exe is the loader, which must not be started in the program's place.
    loader = "/lib64/ld-linux-x86-64.so.2"
    if not Path(loader).exists():
        pytest.fail(f"{loader} is missing: this test knows the loader of x86-64 only")
    done = start([loader, str(SDTUNE), "--version"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sdtune")


@pytest.mark.parametrize(("settings", "count"), [({}, BOUND), ({"GOMP_SPINCOUNT": "77"}, "77"),
                                                 ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")])
def test_module_bounds_the_spin_unless_the_user_has(settings: dict[str, str], count: str) -> None:
    done = python("import sdtune", **settings)
    assert done.returncode == 0, done.stderr
    assert spin_count(done.stderr) == count
    assert "Warning" not in done.stderr


def test_module_warns_once_where_libgomp_came_first() -> None:
    done = python(LOAD_LIBGOMP + "import sdtune\nimport sdtune._spin_limit")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert f"set GOMP_SPINCOUNT={BOUND}" in done.stderr
    assert spin_count(done.stderr) != BOUND


@pytest.mark.parametrize("settings", [{"GOMP_SPINCOUNT": "77"}, {"OMP_NUM_THREADS": "1"}])
def test_module_does_not_warn_without_a_reason(settings: dict[str, str]) -> None:
    done = python(LOAD_LIBGOMP + "import sdtune", **settings)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_each_maker_of_processors_has_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sdtune import _spin_limit
    for maker, count in {"AuthenticAMD": "1000", "GenuineIntel": "3000"}.items():
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\n")
        monkeypatch.setattr(_spin_limit, "CPU_INFO", tmp_path / "cpuinfo")
        assert _spin_limit.spin_count() == count
    monkeypatch.setattr(_spin_limit, "CPU_INFO", tmp_path / "missing")
    assert _spin_limit.spin_count() == "3000"


def test_libraries_whose_names_are_not_utf_8_end_no_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sdtune import _spin_limit
    monkeypatch.setattr(_spin_limit, "MAPS", tmp_path / "maps")
    for maps in (b"/usr/lib/caf\xe9.so\n", b"/opt/caf\xe9/libgomp.so.1\n"):
        (tmp_path / "maps").write_bytes(maps)
        assert _spin_limit.libgomp_is_loaded() == (b"libgomp" in maps)


# What a child does that is forked from a parent which has computed or not, with the error or "done" to the parent's stdout.
FORK = """
import os, sdtune
def compute(): sdtune.StableDiffusionPipeline.from_pretrained({model!r})("a cat", num_inference_steps=2, output_type="np")
def plan(): sdtune.plan(sdtune.TrainConfig(base={model!r}), photos=5, savings=False)
def load(): sdtune.UNet2DConditionModel.from_pretrained({model!r} + "/unet")
def nothing(): pass
{parent}()
child = os.fork()
if not child:
    try:
        {child}()
        os.write(1, b"done")
    except RuntimeError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
compute()
"""
REFUSED = "forked from one in which sdtune had computed"


@pytest.mark.parametrize(("parent", "child", "threads", "said"), [
    ("compute", "compute", "2", REFUSED), ("compute", "compute", "1", "done"), ("nothing", "compute", "2", "done"),
    ("plan", "compute", "2", REFUSED), ("compute", "plan", "2", REFUSED), ("compute", "load", "2", REFUSED)])
def test_a_process_forked_after_computing_is_refused_where_it_would_wait(
        tiny_sd1: Path, parent: str, child: str, threads: str, said: str) -> None:
    done = python(FORK.format(model=str(tiny_sd1), parent=parent, child=child), OMP_NUM_THREADS=threads)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize(("quota", "warned"), [("100000 100000", True), ("200000 100000", False), ("max 100000", False)])
def test_training_warns_of_more_threads_than_the_container_has_cores(quota: str, warned: bool, tiny_sd1: Path, tmp_path: Path) -> None:
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(f"{quota}\n")
    ended = run(["train", "--images", str(ROOT / "examples" / "backpack_dog"), "--base", str(tiny_sd1), "--output", "run", "--device", "cpu",
                 "--resolution", "32", "--max-train-steps", "1", "--no-with-prior-preservation", "--report-to", "none"],
                cwd=tmp_path, OMP_NUM_THREADS="2", SDTUNE_SYSTEM_ROOT=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert ("computes with 2 threads, which wait for each other: the container's quota of cores is 1" in ended.stderr) == warned, ended.stderr
    assert ("set OMP_NUM_THREADS=1" in ended.stderr) == warned

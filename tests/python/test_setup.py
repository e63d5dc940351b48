"""scripts/setup.sh on a fresh machine, in a copied folder and with stubs of what it calls: apt that is busy, an environment whose making
was ended, packages of elsewhere. And how many compilations scripts start at once, and scripts/dev_install.sh."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from program import ROOT

# Stands for Python, its venv and its pip: notes its words, and makes environments of itself.
PYTHON = """#!/bin/sh
echo "$*" >>"$LOG"
if [ "$1 $2" = "-m venv" ]; then
  for folder in "$@"; do :; done
  mkdir -p "$folder/bin" && cp "$0" "$folder/bin/python"
fi
"""
HALF = "#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with what setup.sh reads, and a folder of programs that stand for the machine's."""
    folder = tmp_path / "checkout"
    (folder / "scripts").mkdir(parents=True)
    for name in ("setup.sh", "gpu_devices.sh", "compile_jobs.sh", "apt-packages.txt", "apt-test-packages.txt"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    programs = folder / "programs"
    program(programs / "python3", PYTHON)
    program(programs / "g++", "#!/bin/sh\necho 12\n")
    program(programs / "sudo", '#!/bin/sh\nexec "$@"\n')
    return folder


def setup(tree: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {"PATH": f"{tree / 'programs'}:/usr/bin:/bin", "LOG": str(tree / "log"), "SDTUNE_CUDA": "OFF",
                "SDTUNE_SYSTEM_ROOT": str(tree), **environment}
    return subprocess.run(["bash", str(tree / "scripts" / "setup.sh"), *words], env=settings, capture_output=True, text=True, check=False)


def noted(tree: Path, part: str) -> list[str]:
    """The calls of stubs that hold this."""
    return [line for line in (tree / "log").read_text().splitlines() if part in line]


@pytest.mark.parametrize("busy", [0, 2, 100])
def test_another_apt_is_waited_for(tree: Path, busy: int) -> None:
    """As unattended-upgrades on a fresh machine: `update` ends at once where the lock is taken, `install` can wait for it itself."""
    program(tree / "programs" / "dpkg-query", "#!/bin/sh\nexit 1\n")
    program(tree / "programs" / "sleep", '#!/bin/sh\necho "sleep $*" >>"$LOG"\n')
    program(tree / "programs" / "apt-get", f"""#!/bin/sh
echo "apt-get $*" >>"$LOG"
case "$*" in
  update*) [ "$(grep -c 'apt-get update' "$LOG")" -gt {busy} ] || {{ echo "E: Could not get lock" >&2; exit 100; }} ;;
esac
""")
    done = setup(tree, "--tools")
    if busy == 100:
        assert done.returncode == 2 and "apt-get update failed 6 times" in done.stderr
        assert len(noted(tree, "apt-get update")) == 6 and not noted(tree, " install ")
        return
    assert done.returncode == 0, done.stderr
    assert len(noted(tree, "apt-get update")) == busy + 1 and len(noted(tree, "sleep ")) == busy
    (line,) = noted(tree, "apt-get -o")
    assert line.startswith("apt-get -o DPkg::Lock::Timeout=300 install -y") and "build-essential" in line


@pytest.mark.parametrize("words", [["--tools"], ["--tools", "--tests"]], ids=["tools", "tests"])
@pytest.mark.parametrize("broken", [".venv", ".venv/trackers"])
def test_an_environment_without_pip_is_made_again(tree: Path, broken: str, words: list[str]) -> None:
    """Its making was ended, or the system had no ensurepip: there is a Python, and every later call would want its pip."""
    if broken != ".venv":
        program(tree / ".venv" / "bin" / "python", PYTHON)
    program(tree / broken / "bin" / "python", HALF)
    for _ in range(2):
        done = setup(tree, *words, SDTUNE_SKIP_APT="1")
        assert done.returncode == 0, done.stdout + done.stderr
    made = [line.removeprefix("-m venv ") for line in noted(tree, "-m venv")]
    expected = ["--clear .venv"] if broken == ".venv" else []
    if "--tests" in words:
        expected.append("--clear .venv/trackers")
    assert made == expected, "once, and what is whole stays"


def test_a_broken_environment_does_not_hide_an_old_python(tree: Path) -> None:
    program(tree / ".venv" / "bin" / "python", HALF)
    done = setup(tree, "--tools", SDTUNE_SKIP_APT="1", SDTUNE_SETUP_PYTHON=str(program(tree / "old", "#!/bin/sh\nexit 1\n")))
    assert done.returncode == 2 and "is no Python 3.11 or later" in done.stderr


def test_an_environment_of_an_old_python_is_refused(tree: Path) -> None:
    """As one that the user made on Ubuntu 22.04: it has its pip, and no package of the lists is to be had for it."""
    program(tree / ".venv" / "bin" / "python", '#!/bin/sh\n[ "$2" = pip ]\n')
    done = setup(tree, "--tools", SDTUNE_SKIP_APT="1")
    assert done.returncode == 2 and ".venv/bin/python is no Python 3.11 or later" in done.stderr and "remove .venv" in done.stderr


@pytest.mark.parametrize("value", ["on", "1", "yes"])
def test_a_word_that_says_neither_on_nor_off_is_refused(tree: Path, value: str) -> None:
    """CMake would take it for ON, and the packages would be those of neither."""
    done = setup(tree, "--tools", SDTUNE_SKIP_APT="1", SDTUNE_CUDA=value)
    assert done.returncode == 2 and done.stderr == f"setup: error: SDTUNE_CUDA: must be ON or OFF (got {value})\n"


def test_apt_of_another_user_knows_the_proxy(tree: Path) -> None:
    """sudo leaves out what the user's shell says of it."""
    program(tree / "programs" / "id", "#!/bin/sh\necho 1000\n")
    program(tree / "programs" / "sudo", '#!/bin/sh\nexec env -i PATH="$PATH" LOG="$LOG" "$@"\n')
    program(tree / "programs" / "dpkg-query", "#!/bin/sh\nexit 1\n")
    program(tree / "programs" / "apt-get", '#!/bin/sh\necho "apt-get by ${http_proxy:-none} not ${no_proxy:-none}, $*" >>"$LOG"\n')
    done = setup(tree, "--tools", http_proxy="http://proxy:3128", no_proxy="a b")
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in noted(tree, "apt-get by")] == ["apt-get by http://proxy:3128 not a b"] * 2


def test_packages_of_elsewhere_do_not_count(tree: Path) -> None:
    """Another torch in PYTHONPATH is installed for pip, and PIP_TARGET takes what it installs out of .venv."""
    names = ("PYTHONPATH", "PYTHONHOME", "PIP_CONSTRAINT", "PIP_PREFIX", "PIP_TARGET", "PIP_USER")
    told = " ".join(f"${{{name}-}}" for name in names)
    program(tree / ".venv" / "bin" / "python", f'#!/bin/sh\necho "python$*, told <{told}>" >>"$LOG"\n')
    done = setup(tree, "--tools", SDTUNE_SKIP_APT="1", **dict.fromkeys(names, "/elsewhere"))
    assert done.returncode == 0, done.stderr
    assert noted(tree, "pip install") and not noted(tree, "/elsewhere")


def test_another_torch_in_the_environment_is_replaced(tree: Path) -> None:
    """A package that was installed since brought it."""
    program(tree / ".venv" / "bin" / "python", PYTHON)
    packages = tree / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "torch-2.11.0+cpu.dist-info").mkdir(parents=True)

    def installed() -> int:
        done = setup(tree, "--tools", SDTUNE_SKIP_APT="1")
        assert done.returncode == 0, done.stderr
        return len(noted(tree, "-r requirements/torch-cpu.txt"))

    assert [installed(), installed()] == [1, 1]
    (packages / "torch-2.11.0+cpu.dist-info").rename(packages / "torch-2.12.0.dist-info")
    assert installed() == 2


def test_what_cmake_knows_of_a_former_python_goes_with_it(tree: Path) -> None:
    cache = tree / "build" / "CMakeCache.txt"
    program(cache, "")
    program(tree / ".venv" / "bin" / "python", PYTHON)
    assert setup(tree, "--tools", SDTUNE_SKIP_APT="1").returncode == 0 and cache.is_file()
    program(tree / ".venv" / "bin" / "python", HALF)
    assert setup(tree, "--tools", SDTUNE_SKIP_APT="1").returncode == 0 and not cache.exists()


@pytest.mark.parametrize("case", ["no HOME", "HOME is missing", "HOME", "CCACHE_DIR"])
def test_ccache_has_a_folder_that_it_can_write(tree: Path, tmp_path: Path, case: str) -> None:
    """Without one it ends each compilation with an error of its own."""
    settings = {"no HOME": {}, "HOME is missing": {"HOME": str(tmp_path / "absent")}, "HOME": {"HOME": str(tmp_path)},
                "CCACHE_DIR": {"CCACHE_DIR": "/mine"}}[case]
    program(tree / ".venv" / "bin" / "python", PYTHON)
    program(tree / ".venv" / "bin" / "cmake", "#!/bin/sh\n")
    program(tree / ".venv" / "bin" / "ninja", '#!/bin/sh\necho "ninja, cache in <${CCACHE_DIR-}>" >>"$LOG"\n')
    done = setup(tree, SDTUNE_SKIP_APT="1", **settings)
    assert done.returncode == 0, done.stderr
    expected = {"HOME": "", "CCACHE_DIR": "/mine"}.get(case, f"{tree}/build/ccache")
    assert noted(tree, "ninja") == [f"ninja, cache in <{expected}>"]


def test_a_build_folder_is_imported_from_wherever_it_lies(tmp_path: Path) -> None:
    """scripts/dev_install.sh, in a folder whose name is more than letters."""
    folder = tmp_path / "my friend's sdtune"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "dev_install.sh", folder / "scripts")
    command = ["bash", str(folder / "scripts" / "dev_install.sh")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2, "without .venv"
    venv.create(folder / ".venv", with_pip=False, symlinks=True)
    nothing = subprocess.run(command, capture_output=True, text=True, check=False)
    assert nothing.returncode == 2 and f"{folder}/build/python holds no sdtune" in nothing.stderr
    module = program(folder / "build" / "python" / "sdtune" / "__init__.py", "")
    subprocess.run(command, check=True)
    imported = [str(folder / ".venv" / "bin" / "python"), "-c", "import sdtune; print(sdtune.__file__)"]
    clean = {"PATH": "/usr/bin:/bin"}
    assert subprocess.run(imported, capture_output=True, text=True, check=False, cwd=tmp_path, env=clean).stdout == f"{module}\n"
    subprocess.run([*command, "--remove"], check=True)
    assert subprocess.run(imported, capture_output=True, check=False, cwd=tmp_path, env=clean).returncode == 1


@pytest.mark.parametrize(("kind", "named", "taken"), [("conda", False, False), ("conda", True, True), ("other", False, True)])
def test_libraries_of_conda_are_left_out(kind: str, named: bool, taken: bool, tmp_path: Path) -> None:
    """CMake looks for them in the prefixes of PATH first; what is installed then finds no libyaml-cpp of conda."""
    prefix = tmp_path / "conda"
    package = program(prefix / "lib" / "cmake" / "probe" / "probe-config.cmake", "").parent
    (prefix / "bin").mkdir()
    if kind == "conda":
        (prefix / "conda-meta").mkdir()
    script = tmp_path / "find.cmake"
    script.write_text(f"""cmake_minimum_required(VERSION 3.25)
include({ROOT}/cmake/SdtuneConda.cmake)
find_package(probe QUIET)
message("found <${{probe_DIR}}>")
""")
    settings = {"PATH": f"{prefix}/bin:/usr/bin:/bin"} | ({"CMAKE_PREFIX_PATH": str(prefix)} if named else {})
    done = subprocess.run([str(Path(sys.executable).parent / "cmake"), "-P", str(script)], capture_output=True, text=True, env=settings, check=False)
    assert done.returncode == 0, done.stderr
    assert (f"found <{package}>" in done.stderr) == taken, done.stderr
    assert ("Libraries of conda" in done.stdout) != taken or kind == "other"
    assert "include(SdtuneConda)\n\nadd_subdirectory(model)" in (ROOT / "CMakeLists.txt").read_text()


@pytest.mark.parametrize(("kind", "version", "errors"), [("GNU", "12.2.0", "ON"), ("GNU", "13.3.0", "OFF"), ("Clang", "14.0.6", "OFF")])
def test_warnings_of_a_compiler_that_no_test_ran_with_end_no_build(kind: str, version: str, errors: str, tmp_path: Path) -> None:
    """Such as Ubuntu 24.04's g++ 13, which warns of more than Debian 12's."""
    text = (ROOT / "cmake" / "SdtuneOptions.cmake").read_text()
    script = tmp_path / "options.cmake"
    script.write_text(f"""cmake_minimum_required(VERSION 3.25)
set(CMAKE_CXX_COMPILER_ID {kind})
set(CMAKE_CXX_COMPILER_VERSION {version})
{text[:text.index("if(NOT CMAKE_BUILD_TYPE")]}
message("errors <${{SDTUNE_WERROR}}>")
""")
    done = subprocess.run([str(Path(sys.executable).parent / "cmake"), "-P", str(script)], capture_output=True, text=True, check=True)
    assert done.stderr == f"errors <{errors}>\n"


GIGABYTE = 10**9
PLENTY = {"proc/meminfo": "MemTotal: 999999999 kB\nMemAvailable:   900000000 kB\n"}
# Cores that nproc counts, files of the system, and what may then run at once.
MACHINES = {
    "no limits": (6, PLENTY, 6),
    "CI": (2, {"proc/meminfo": "MemTotal: 25165824 kB\nMemAvailable: 20971520 kB\n"}, 2),
    "a quota of 8 of 128 cores": (128, PLENTY | {
        "sys/fs/cgroup/cpu.max": "800000 100000\n", "sys/fs/cgroup/memory.max": f"{32 * GIGABYTE}\n"}, 8),
    "more quota than cores": (4, PLENTY | {"sys/fs/cgroup/cpu.max": "800000 100000\n"}, 4),
    "less than a core": (128, PLENTY | {"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
    "no quota": (6, PLENTY | {"sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"}, 6),
    "what is left of a memory limit": (128, PLENTY | {
        "sys/fs/cgroup/memory.max": f"{16 * GIGABYTE}\n", "sys/fs/cgroup/memory.stat": f"anon {3 * GIGABYTE}\nfile {9 * GIGABYTE}\n"}, 4),
    "a job's group above": (128, PLENTY | {
        "proc/self/cgroup": "0::/slurm/job_7/step_0\n", "sys/fs/cgroup/slurm/job_7/step_0/cpu.max": "max 100000\n",
        "sys/fs/cgroup/slurm/job_7/cpu.max": "300000 100000\n"}, 3),
    "version 1": (128, PLENTY | {
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1\n",
        "sys/fs/cgroup/cpu/docker/a1/cpu.cfs_quota_us": "700000\n", "sys/fs/cgroup/cpu/docker/a1/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 7),
    "version 1 without a quota": (5, PLENTY | {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 5),
    "memory of version 1": (128, PLENTY | {
        "proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": f"{10 * GIGABYTE}\n",
        "sys/fs/cgroup/memory/a/memory.stat": f"cache {9 * GIGABYTE}\ntotal_rss {3 * GIGABYTE}\n"}, 2),
    "little memory": (64, {"proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\n"}, 2),
    "less than one needs": (64, {"proc/meminfo": "MemTotal: 2000000 kB\nMemAvailable: 1000000 kB\n"}, 1),
    "nothing is known": (3, {}, 3),
}


def jobs_of_build(tree: Path, **environment: str) -> str:
    """What setup.sh gives ninja."""
    for name in ("cmake", "ninja"):
        program(tree / ".venv" / "bin" / name, f'#!/bin/sh\necho "{name} $*" >>"$LOG"\n')
    program(tree / ".venv" / "bin" / "python", PYTHON)
    done = setup(tree, SDTUNE_SKIP_APT="1", **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = noted(tree, "ninja ")
    return line.split(" -j ")[1].split()[0]


@pytest.mark.parametrize("name", MACHINES)
def test_compilations_fit_cores_and_memory(name: str, tree: Path) -> None:
    cores, files, expected = MACHINES[name]
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    program(tree / "programs" / "nproc", f"#!/bin/sh\necho {cores}\n")
    assert jobs_of_build(tree) == str(expected)


def test_what_the_user_says_of_compilations_stands(tree: Path) -> None:
    program(tree / "programs" / "nproc", "#!/bin/sh\necho 1\n")
    assert jobs_of_build(tree, SDTUNE_JOBS="9") == "9"


@pytest.mark.parametrize("script", ["setup.sh", "release.sh", "prove.sh", "docker/build.sh"])
def test_scripts_that_compile_ask_the_same_rule(script: str) -> None:
    text = (ROOT / "scripts" / script).read_text()
    assert "\n. scripts/compile_jobs.sh\n" in text and "$(compile_jobs)" in text and "nproc" not in text

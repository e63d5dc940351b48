"""`sdtune prove` on the CPU: the whole of it passes, three planted mistakes do not, and a second call continues."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from program import ROOT, SDTUNE, run

ME = ROOT / "examples" / "me"
HOST = ROOT / "build" / "tests" / "gpu" / "host"
PARTS = ["kernels", "parity_fp32", "parity_bf16", "parity_fp16", "graphs", "ranks", "dreambooth", "plan"]
STEPS = 30  # of DreamBooth: with portrait-128's defaults the loss on the photos rises in the first ten
OF_A_GPU = {"parity_fp16": "a CPU does not train in fp16", "graphs": "CUDA graphs need a GPU"}


def prove(output: Path, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """On the bundled base and the example photos."""
    return run(["prove", "--images", str(ME), "--device", "cpu", "--output", str(output), *map(str, words)], timeout=900,
               **environment)


def parts_of(output: Path) -> dict[str, dict]:
    """Name -> what the part found."""
    return {part["name"]: part for part in json.loads((output / "prove.json").read_text())["parts"]}


def failed_checks(part: dict) -> list[str]:
    return [check["name"] for check in part["checks"] if not check.get("passed", True)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """All parts, once."""
    output = tmp_path_factory.mktemp("prove") / "whole"
    return output, prove(output, "--steps", STEPS)


def test_all_parts_pass_on_a_cpu(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """fp16 and CUDA graphs are said to be impossible there, which is no failure."""
    output, done = whole
    assert done.returncode == 0, done.stdout + done.stderr
    parts = parts_of(output)
    assert list(parts) == PARTS
    assert {name: part["status"] for name, part in parts.items()} == {name: "skipped" if name in OF_A_GPU else "passed" for name in PARTS}
    assert {name: parts[name]["reason"] for name in OF_A_GPU} == OF_A_GPU
    assert all(part["checks"] for name, part in parts.items() if name not in OF_A_GPU), "a part without a check proves nothing"
    assert all(part["seconds"] > 0 for name, part in parts.items() if name not in OF_A_GPU)
    assert parts["dreambooth"]["peak_bytes"] > 100e6


def test_every_check_but_two_has_a_bar(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """What is told without a bar is the change of the weights in half precision, and nothing else."""
    free = {(name, check["name"]) for name, part in parts_of(whole[0]).items() for check in part["checks"] if "passed" not in check}
    assert free == {("parity_bf16", "change of the weights")}


def without_checks(machine: dict) -> dict:
    """What stays the same from one minute to the next: no clock, no free memory."""
    assert {check["name"] for check in machine["checks"]} >= {"cpu", "memory", "disk", "clock", "device"}
    return {name: value for name, value in machine.items() if name != "checks"}


def test_the_report_is_whole(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """One JSON with the machine, one page with the images in it, one text that names both."""
    output, _ = whole
    report = json.loads((output / "prove.json").read_text())
    machine = json.loads(run(["doctor", "--machine", "--json"]).stdout)
    assert without_checks(report["machine"]) == without_checks(machine) and report["planted_fault"] is None and report["verdict"] == "passed"
    page = (output / "prove.html").read_text()
    assert page.count("data:image/png;base64,") == 1
    assert not re.search(r'(?:src|href)="(?!data:)', page), "the page needs no other file"
    assert all(f"<h2>{name}:" in page for name in PARTS)
    text = (output / "send_in.txt").read_text()
    assert "prove.json" in text and "prove.html" in text and "Failed parts" not in text


def test_a_second_call_does_nothing_again(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """What is over stays as it is; what was skipped is tried again."""
    output, _ = whole
    before = {path.name: path.stat().st_mtime_ns for path in (output / "parts").iterdir()}
    done = prove(output, "--steps", STEPS)
    assert done.returncode == 0 and done.stdout.count("(of an earlier call)") == len(PARTS) - len(OF_A_GPU)
    after = {path.name: path.stat().st_mtime_ns for path in (output / "parts").iterdir()}
    assert {name for name in before if before[name] != after[name]} == {f"{part}.json" for part in OF_A_GPU}


def test_another_proof_is_refused(whole: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """Another base, and a folder of something else: one line, exit code 2, and nothing is written."""
    output, _ = whole
    base = tmp_path / "base"
    subprocess.run(["cp", "-r", str(ROOT / "models" / "portrait-64"), str(base)], check=True)
    scheduler = base / "scheduler" / "scheduler_config.json"
    scheduler.write_text(scheduler.read_text() + "\n")
    for words, said in (((output, "--steps", STEPS, "--base", base), "holds the proof of another base (there: "),
                        ((output, "--steps", STEPS + 1), f"holds the proof of another number of steps (there: {STEPS}; now: {STEPS + 1})"),
                        ((base,), "holds something else than a proof")):
        done = prove(*words)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    done = prove(output, "--steps", STEPS, SDTUNE_PROVE_FAULT="step")
    assert done.returncode == 2 and "another planted fault (there: none; now: step)" in done.stderr
    assert not (base / "parts").exists()


@pytest.mark.parametrize(("words", "said"), [
    (["--parts", "speed"], "--parts: there is no such part (got speed; allowed: kernels, "),
    (["--parts", "diffusers"], "--parts: diffusers needs --against diffusers"),
    (["--images", "/nowhere"], "/nowhere"),
    (["--base", "/nowhere"], "/nowhere"),
    (["--against", "kohya"], "--against: "),
    (["--minutes", "0"], "--minutes: is out of range"),
])
def test_mistakes_are_told_before_anything_runs(tmp_path: Path, words: list[str], said: str) -> None:
    done = prove(tmp_path / "out", *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_a_wrong_step_fails(tmp_path: Path) -> None:
    """Updates 5 % too large; in bfloat16 the statement of the update alone finds it."""
    done = prove(tmp_path / "out", "--parts", "parity_fp32", "--parts", "parity_bf16", SDTUNE_PROVE_FAULT="step")
    assert done.returncode == 1
    parts = parts_of(tmp_path / "out")
    for part in parts.values():
        assert "update against AdamW's statement" in failed_checks(part)
    assert json.loads((tmp_path / "out" / "prove.json").read_text())["planted_fault"] == "step"
    assert "parity_fp32" in (tmp_path / "out" / "send_in.txt").read_text()


def test_a_plan_that_is_far_off_fails(tmp_path: Path) -> None:
    """A tenth of memory and time."""
    done = prove(tmp_path / "out", "--parts", "dreambooth", "--parts", "plan", "--steps", 8, SDTUNE_PROVE_FAULT="plan")
    assert done.returncode == 1
    part = parts_of(tmp_path / "out")["plan"]
    assert failed_checks(part) == ["peak memory of the run / planned", "time of the run / planned"]


def test_planted_faults_are_for_a_cpu_alone() -> None:
    done = run(["prove", "--images", str(ME), "--device", "cpu"], SDTUNE_PROVE_FAULT="luck")
    assert done.returncode == 2 and "SDTUNE_PROVE_FAULT: no such fault (got luck; allowed: step, plan)" in done.stderr


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    """tests/gpu/host/mutants.py."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests" / "gpu" / "host" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_our_cuda_kernels_pass_where_a_cpu_stands_for_a_gpu(tmp_path: Path) -> None:
    """Compiled for the CPU; each of the six proves itself and is used."""
    done = prove(tmp_path / "out", "--parts", "kernels", SDTUNE_PROVE_KERNELS=str(HOST / "libsdtune_host_kernels.so"))
    assert done.returncode == 0, done.stdout + done.stderr
    names = [check["name"] for check in parts_of(tmp_path / "out")["kernels"]["checks"]]
    assert sum(name.endswith(" ran") for name in names) == 6
    assert sum("beside LibTorch" in name for name in names) == 16


# Mistakes that a small map with SiLU does not show: file, text, and what it becomes.
WALK, FORWARD = "model/kernels/cuda/group_norm_walk.cuh", "model/kernels/cuda/group_norm_forward.cu"
IN_LARGE_MAPS = {
    "the second tile": (WALK, "blockIdx.x * cut.tile + threadIdx.x % cut.tile", "threadIdx.x % cut.tile"),
    "the second slab of a plane": (WALK, "begin = slab * cut.slab_size + static_cast<int>", "begin = static_cast<int>"),
    "SiLU everywhere": (FORWARD, "cut.silu ? z / (1.0f + expf(-z)) : z", "z / (1.0f + expf(-z))"),
}


@pytest.mark.parametrize(("mutant", "found"), [
    *((name, "kernel group_norm (float32) beside LibTorch") for name in IN_LARGE_MAPS),
    ("the offset forgotten", "kernel group_norm (float32) beside LibTorch"),  # switched off with a warning: training continues
    ("row of the draws", "random numbers that differ"),                       # an error wherever it is used
    ("skip not obeyed", "AdamW (float32)"),
])
def test_a_broken_kernel_fails(tmp_path: Path, mutants: ModuleType, mutant: str, found: str) -> None:
    """A library with one mistake in one kernel."""
    here = [mutants.Mutant(name, "group_norm", file, old, new, unit=FORWARD) for name, (file, old, new) in IN_LARGE_MAPS.items()]
    broken = next(one for one in [*mutants.MUTANTS, *here] if one.name == mutant)
    unit, text = broken.source()
    source = tmp_path / broken.file
    source.parent.mkdir(parents=True)
    source.write_text(text)
    library = tmp_path / "libbroken.so"
    compiler = re.search(r"CMAKE_CXX_COMPILER:\w+=(.+)", (ROOT / "build" / "CMakeCache.txt").read_text())[1]
    subprocess.run([compiler, "-std=c++20", "-O1", "-fPIC", "-shared", "-ffp-contract=off", f"-I{tmp_path}", f"-I{ROOT}",
                    "-isystem", str(ROOT / "tests" / "gpu" / "host"), "-x", "c++", str(source if unit == ROOT / broken.file else unit),
                    "-x", "none", "-Wl,-u,sdtune_cuda_table,-u,sdtune_optimizer_table",
                    str(HOST / "libsdtune_host_kernels_static.a"), "-o", str(library)], check=True)
    done = prove(tmp_path / "out", "--parts", "kernels", SDTUNE_PROVE_KERNELS=str(library))
    assert done.returncode == 1, done.stdout + done.stderr
    part = parts_of(tmp_path / "out")["kernels"]
    assert any(name.startswith(found) for name in failed_checks(part)), failed_checks(part)


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until the file has so many lines."""
    for _ in range(6000):
        if process.poll() is not None or (path.exists() and path.read_text().count("\n") >= count):
            return
        time.sleep(0.05)


def test_a_save_that_was_killed_is_no_checkpoint(tmp_path: Path) -> None:
    """Of an earlier call, before its run had a whole one: DreamBooth begins anew, and what it finds is kept."""
    output = tmp_path / "out"
    assert prove(output, "--parts", "dreambooth", "--steps", 4, "--minutes", 1e-9).returncode == 143
    (output / "work" / "dreambooth" / "checkpoints" / "step-00000002.tmp").mkdir(parents=True)
    done = prove(output, "--parts", "dreambooth", "--steps", 4)
    part = parts_of(output)["dreambooth"]
    assert "exit code" not in part["reason"], done.stderr
    assert [check["value"] for check in part["checks"] if check["name"] == "steps"] == [4]
    assert part["numbers"]["processes"] == 1


@pytest.mark.long
def test_a_killed_call_is_continued(tmp_path: Path) -> None:
    """SIGKILL in the middle of DreamBooth: what was over is not done again, and the run resumes from its own checkpoint."""
    output = tmp_path / "out"
    words = ["--parts", "parity_fp32", "--parts", "dreambooth", "--steps", str(STEPS)]
    command = [str(SDTUNE), "prove", "--images", str(ME), "--device", "cpu", "--output", str(output), *words]
    first = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, text=True)
    wait_for_lines(output / "work" / "dreambooth" / "metrics.jsonl", 3, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    parity = (output / "parts" / "parity_fp32.json").stat().st_mtime_ns
    assert not (output / "parts" / "dreambooth.json").exists()
    done = prove(output, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (output / "parts" / "parity_fp32.json").stat().st_mtime_ns == parity
    attempts = [json.loads(line)["attempt"] for line in (output / "work" / "dreambooth" / "metrics.jsonl").read_text().splitlines()]
    assert len(attempts) == STEPS and attempts[0] == 1 and attempts[-1] == 2
    assert parts_of(output)["dreambooth"]["numbers"]["processes"] == 2
    prove(output, "--parts", "plan", "--steps", STEPS)
    free = [check["name"] for check in parts_of(output)["plan"]["checks"] if "passed" not in check]
    assert free == ["time of the run / planned"], "the run was in two parts"


@pytest.mark.long
def test_a_call_ends_with_its_time(tmp_path: Path) -> None:
    """Exit code 143, which may be retried; the next call finishes what was begun."""
    output = tmp_path / "out"
    done = prove(output, "--parts", "dreambooth", "--steps", STEPS, "--minutes", 0.05)
    assert done.returncode == 143 and "the same command continues" in done.stdout, done.stdout + done.stderr
    assert parts_of(output)["dreambooth"]["status"] == "unfinished"
    done = prove(output, "--parts", "dreambooth", "--steps", STEPS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert parts_of(output)["dreambooth"]["status"] == "passed"


def test_diffusers_agrees_and_is_timed(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Its UNet and torch's AdamW on the recorded steps, both formats. How long a step takes is told, and asserted nowhere."""
    output, _ = whole
    done = prove(output, "--steps", STEPS, "--against", "diffusers", SDTUNE_PYTHON=sys.executable)
    assert done.returncode in (0, 1), done.stderr
    part = parts_of(output)["diffusers"]
    assert [name for name in failed_checks(part) if "diffusers'" not in name] == []
    names = [check["name"] for check in part["checks"]]
    for dtype in ("float32", "bfloat16"):
        assert sum(name.startswith(f"{dtype} against diffusers in float32") for name in names) == 4
    assert part["numbers"]["diffusers"]["seconds_a_step"] > 0 and part["numbers"]["sdtune"]["peak_bytes"] > 0


def test_diffusers_that_is_not_there_is_said(tmp_path: Path) -> None:
    """By the name of the Python, and what it lacks; no failure."""
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho "ModuleNotFoundError: No module named \'diffusers\'" >&2\nexit 1\n')
    python.chmod(0o755)
    done = prove(tmp_path / "out", "--parts", "diffusers", "--against", "diffusers", SDTUNE_PYTHON=str(python))
    assert done.returncode == 0
    part = parts_of(tmp_path / "out")["diffusers"]
    assert part["status"] == "skipped"
    assert part["reason"].startswith(f"{python} has no torch with diffusers (ModuleNotFoundError: No module named 'diffusers')")


def test_what_memory_does_not_suffice_for_is_left_out(tmp_path: Path) -> None:
    """A Python whose diffusers runs out of memory, with the exit code by which diffusers_side.py tells it: skipped, with its words."""
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$2" = check ] && exit 0\necho "CUDA out of memory. Tried to allocate 2.00 GiB." >&2\nexit 4\n')
    python.chmod(0o755)
    words = ("--parts", "diffusers", "--against", "diffusers")
    done = prove(tmp_path / "out", *words, SDTUNE_PYTHON=str(python))
    assert done.returncode == 0, done.stdout + done.stderr
    part = parts_of(tmp_path / "out")["diffusers"]
    assert part["status"] == "skipped" and part["checks"] == []
    assert part["reason"].startswith("steps in no left out: memory does not suffice here: exit code 4: CUDA out of memory.")
    assert "time and memory left out: memory does not suffice here" in part["reason"]
    python.write_text(python.read_text().replace("exit 4", "exit 1"))  # the mutant: any other end is a failure
    done = prove(tmp_path / "other", *words, SDTUNE_PYTHON=str(python))
    assert done.returncode == 1
    assert parts_of(tmp_path / "other")["diffusers"]["status"] == "failed"


@pytest.mark.parametrize("text", [None, "#!/bin/sh\necho Traceback >&2\nexit 1\n"], ids=["no Python", "no torch"])
def test_the_script_says_what_it_lacks(text: str | None, tmp_path: Path) -> None:
    """On a machine where setup.sh has not run: in one line, before anything is built."""
    python = tmp_path / "python3"
    if text is not None:
        python.write_text(text)
        python.chmod(0o755)
    done = subprocess.run(["bash", str(ROOT / "scripts" / "prove.sh"), "--device", "cpu"], capture_output=True, text=True, check=False,
                          env={**os.environ, "SDTUNE_PYTHON": str(python)})
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [f"prove.sh: error: {python} has no torch: scripts/setup.sh makes .venv with it, or SDTUNE_PYTHON "
                                        "names another Python"]


def test_diffusers_side_tells_that_memory_ran_out() -> None:
    """By sdtune's own exit code, in one line."""
    code = ("import sys, runpy, torch\n"
            "def fail(*_, **__): raise torch.OutOfMemoryError('CUDA out of memory. Tried.\\nmore')\n"
            "import diffusers; diffusers.UNet2DConditionModel.from_pretrained = fail\n"
            f"sys.argv = ['side', 'time', '--base', '/nowhere']; runpy.run_path({str(ROOT / 'scripts' / 'prove' / 'diffusers_side.py')!r}, "
            "run_name='__main__')\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 4, done.stderr
    assert done.stderr.splitlines()[-1] == "CUDA out of memory. Tried."


def test_diffusers_side_takes_the_gpu_that_it_is_told() -> None:
    """Not the first one."""
    code = ("import sys, runpy, torch, diffusers\n"
            "class Model:\n"
            "    def to(self, device): print('model to', device); raise torch.OutOfMemoryError('none')\n"
            "torch.cuda.set_device = lambda device: print('thread to', device)\n"
            "diffusers.UNet2DConditionModel.from_pretrained = lambda *_, **__: Model()\n"
            "sys.argv = ['side', 'time', '--base', '/nowhere', '--device', 'cuda:1']\n"
            f"runpy.run_path({str(ROOT / 'scripts' / 'prove' / 'diffusers_side.py')!r}, run_name='__main__')\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 4, done.stderr
    assert done.stdout.splitlines() == ["thread to cuda:1", "model to cuda:1"]

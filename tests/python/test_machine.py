"""Which GPU is taken, and what is said of one that cannot be: `doctor --machine`, `check`, `train` and `sample` with a stub of
the driver's library. What a GPU then computes is not tested here."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from driver_stub import StubbedMachine
from ports import free_port
from program import ROOT, run
from test_ranks import start_rank, train_command

ME = ROOT / "examples" / "me"
VAE = ROOT / "models" / "portrait-64" / "vae"
TOO_OLD = "supports CUDA 12.4, and CUDA 13.0 (driver 580 or newer) is needed"
V100 = "Tesla V100 has compute capability 7.0, and LibTorch needs 7.5 or newer"
NO_RUNTIME = "libcuda.so.1 is missing here: start the container with the NVIDIA runtime"


@pytest.fixture
def machine(tmp_path: Path) -> StubbedMachine:
    return StubbedMachine(tmp_path)


def doctor(environment: dict[str, str]) -> tuple[int, dict]:
    ended = run(["doctor", "--machine", "--json"], **environment)
    assert ended.stderr == "", ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def needs_kernels() -> None:
    if not doctor({})[1]["kernels"]["built"]:
        pytest.skip("this build has no CUDA kernels: SDTUNE_CUDA=ON")


@pytest.mark.parametrize("capability", ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"])
def test_every_supported_gpu_is_usable(machine: StubbedMachine, capability: str) -> None:
    needs_kernels()
    report = doctor(machine.environment(f"NVIDIA A={capability};NVIDIA B={capability}"))[1]
    assert [(gpu["index"], gpu["name"], gpu["compute_capability"], gpu["fault"]) for gpu in report["gpus"]] == [
        (0, "NVIDIA A", capability, None), (1, "NVIDIA B", capability, None)]
    assert report["gpus"][0]["memory_bytes"] == 24 << 30
    assert report["driver"] == {"found": True, "release": None, "cuda": "13.0", "needed": "580"}
    # The stub is no driver for LibTorch, and doctor says that the two disagree.
    assert report["libtorch"]["gpus"] == 0
    assert report["fault"].startswith("the NVIDIA driver lists a GPU, and LibTorch finds none: CUDA initialization: ")


def test_doctor_says_what_the_build_holds() -> None:
    needs_kernels()
    report = doctor({})[1]
    assert report["kernels"] == {"built": True, "architectures": ["7.5", "8.0", "8.6", "9.0", "10.0", "12.0"], "ptx": "12.0",
                                 "fault": None}
    assert report["libtorch"]["version"] == "2.11.0"
    assert report["libtorch"]["cuda"] == "13.0"
    assert report["nccl"].split(".")[0] == "2"


REFUSALS = {
    "driver too old": (lambda m: m.environment("NVIDIA H100=9.0", cuda=12040), TOO_OLD),
    "GPU too old": (lambda m: m.environment("Tesla V100=7.0"), V100),
    "driver fails": (lambda m: m.environment("NVIDIA H100=9.0", init=802), "cuInit gave 802, system not yet initialized"),
    "no runtime in the container": (lambda m: [m.add_hardware(), m.add_container(), m.without_driver()][-1], NO_RUNTIME),
    "no driver": (lambda m: [m.add_hardware(), m.without_driver()][-1], "no NVIDIA driver is installed"),
    "kernel module without its library": (lambda m: [m.add_kernel_module("580.82.07"), m.without_driver()][-1], NO_RUNTIME),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_gpu_that_cannot_be_used_is_refused_in_one_line_everywhere(machine: StubbedMachine, case: str, tmp_path: Path) -> None:
    needs_kernels()
    setup, expected = REFUSALS[case]
    environment = setup(machine)
    code, report = doctor(environment)
    assert code == 2
    assert report["device"] is None
    assert expected in report["fault"]
    line = f"sdtune: error: device: {report['fault']} (got auto); --device cpu goes on without a GPU"
    train = ["--images", str(ME), "--output", str(tmp_path / "run"), "--max-train-steps", "1"]
    for words in (["check", *train], ["train", *train]):
        ended = run(words, **environment)
        assert ended.returncode == 2
        assert ended.stderr.splitlines() == [line]
    ended = run(["sample", "--model", "portrait-64", "--prompt", "a photo", "--output", str(tmp_path / "images")], **environment)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [line.replace("device: ", "--device: ", 1)]
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "images").exists()
    assert run(["check", *train, "--device", "cpu"], **environment).returncode == 0


@pytest.mark.long
def test_the_demo_goes_on_with_the_cpu(machine: StubbedMachine, tmp_path: Path) -> None:
    """`train` and `sample` would stop at this GPU; the demo warns once and shows what it has come to show."""
    needs_kernels()
    short = ["--max-train-steps", "1", "--num-class-images", "1", "--class-num-inference-steps", "2"]
    ended = run(["demo", "--output", str(tmp_path / "run"), "--", *short], **machine.environment("NVIDIA H100=9.0", cuda=12040))
    assert ended.returncode == 0, ended.stderr
    warnings = [line for line in ended.stderr.splitlines() if "going on with the CPU" in line]
    assert len(warnings) == 1 and warnings[0].startswith("sdtune: warning: ") and TOO_OLD in warnings[0]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["attempts"][0]["last_step"] == 1
    assert (tmp_path / "run" / "sheet.png").is_file()
    asked = run(["demo", "--output", str(tmp_path / "other"), "--device", "cuda", "--", *short],
                **machine.environment("NVIDIA H100=9.0", cuda=12040))
    assert asked.returncode == 2 and TOO_OLD in asked.stderr and "going on" not in asked.stderr


def test_the_committed_page_is_what_doctor_says() -> None:
    """docs/measurements/doctor_stubbed.md, every case of it."""
    needs_kernels()
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "make_doctor_table.py"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["x86_64 Kernel Module", "Open Kernel Module for x86_64"])
def test_the_release_of_the_kernel_module_is_read(machine: StubbedMachine, name: str) -> None:
    """NVIDIA's own module and the open one name themselves differently; an H200's said "x86_64" before its release."""
    machine.add_kernel_module("580.159.04", name)
    assert doctor(machine.environment("NVIDIA H200=9.0"))[1]["driver"]["release"] == "580.159.04"


def test_a_driver_that_is_too_old_is_no_ok(machine: StubbedMachine) -> None:
    needs_kernels()
    for cuda, status in ((12040, "warn"), (13000, "ok"), (13010, "ok")):
        assert checks_of(doctor(machine.environment("NVIDIA H100=9.0", cuda=cuda))[1])["driver"]["status"] == status


def test_no_gpu_is_no_fault(machine: StubbedMachine) -> None:
    for environment in (machine.without_driver(), machine.environment(), {**machine.environment("NVIDIA L4=8.9"), "CUDA_VISIBLE_DEVICES": ""}):
        if environment.get("CUDA_VISIBLE_DEVICES") == "":
            environment["SDTUNE_STUB_GPUS"] = ""  # as the driver answers then
            machine.add_hardware()
        code, report = doctor(environment)
        assert (code, report["device"]) == (0, "cpu")


def test_auto_passes_over_a_gpu_that_cannot_be_used(machine: StubbedMachine) -> None:
    needs_kernels()
    report = doctor(machine.environment("Tesla V100=7.0;NVIDIA L4=8.9"))[1]
    assert [gpu["fault"] is None for gpu in report["gpus"]] == [False, True]
    ended = run(["check", "--images", str(ME), "--device", "cuda:0"], **machine.environment("Tesla V100=7.0;NVIDIA L4=8.9"))
    assert V100 in ended.stderr
    ended = run(["check", "--images", str(ME), "--device", "cuda:1"], **machine.environment("Tesla V100=7.0;NVIDIA L4=8.9"))
    assert ended.returncode == 0, ended.stderr
    ended = run(["check", "--images", str(ME), "--device", "cuda:2"], **machine.environment("Tesla V100=7.0;NVIDIA L4=8.9"))
    assert "there is no GPU 2 (found 2) (got cuda:2)" in ended.stderr


def test_each_rank_is_checked_with_its_own_gpu(machine: StubbedMachine) -> None:
    needs_kernels()
    environment = machine.environment("NVIDIA L4=8.9") | {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                                                          "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    ended = run(["check", "--images", str(ME)], **environment)
    assert "there is no GPU 1 (found 1) (got cuda:1); --device cuda:0 is the only one" in ended.stderr
    # As where srun shows each task its own GPU alone.
    ended = run(["check", "--images", str(ME), "--device", "cuda:0"], **environment)
    assert "there is no GPU" not in ended.stderr


def test_a_gpu_that_does_not_load_ends_the_other_ranks(machine: StubbedMachine, tiny_sd1: Path, tmp_path: Path) -> None:
    """What only loading CUDA shows, on the machine of rank 1 alone: rank 0 ends with its code, and not after start_timeout with 138."""
    needs_kernels()
    library = tmp_path / "libsdtune_cuda.so"
    library.write_text("no library")
    broken = machine.environment("NVIDIA L4=8.9;NVIDIA L4=8.9") | {"SDTUNE_CUDA_LIBRARY": str(library)}
    command = train_command(tiny_sd1, ME, tmp_path / "run", "--max-train-steps", "1")
    port = free_port()
    ranks = [start_rank(0, 2, port, command), start_rank(1, 2, port, [*command, "--device", "cuda"], **broken)]
    try:
        errors = [rank.communicate(timeout=50)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [2, 2], errors
    assert "our CUDA kernels do not load" in errors[1], errors
    assert re.search(r"rank 1 \(.*failed: device: our CUDA kernels do not load", errors[0]), errors


def test_bf16_on_a_gpu_without_it_is_warned_of(machine: StubbedMachine) -> None:
    needs_kernels()
    for gpu, number_format, is_warned in (("Tesla T4=7.5", "bf16", True), ("Tesla T4=7.5", "default", False), ("NVIDIA L4=8.9", "bf16", False)):
        ended = run(["check", "--images", str(ME), "--json", "--mixed-precision", number_format], **machine.environment(gpu))
        assert ended.returncode == 0, ended.stderr
        found = [warning["what"] for warning in json.loads(ended.stdout)["warnings"] if warning["where"] == "mixed_precision"]
        assert found == ["is bf16, for which Tesla T4 (compute capability 7.5) has no instructions: steps are slow or fail"] * is_warned


def test_kernels_that_are_missing_stop_a_gpu_run(machine: StubbedMachine) -> None:
    needs_kernels()
    environment = machine.environment("NVIDIA L4=8.9") | {"SDTUNE_CUDA_LIBRARY": "/nowhere/libsdtune_cuda.so"}
    ended = run(["check", "--images", str(ME)], **environment)
    assert ended.returncode == 2
    assert "our CUDA kernels are missing" in ended.stderr


def checks_of(report: dict) -> dict[str, dict]:
    return {check["name"]: check for check in report["checks"]}


def test_doctor_looks_at_the_whole_machine(tmp_path: Path) -> None:
    """Each line has ok, warn or fail; the same facts as JSON."""
    ended = run(["doctor", "--machine", "--output", str(tmp_path / "runs" / "me")])
    code, report = doctor({})
    assert ended.returncode == code and ended.stderr == ""
    lines = [line for line in ended.stdout.splitlines() if not line.startswith(" ")]
    assert all(line.split()[0] in ("ok", "warn", "fail") for line in lines), ended.stdout
    names = [line.split()[1] for line in lines]
    assert names == [check["name"] for check in report["checks"]]
    assert names[:9] == ["cpu", "memory", "formats", "disk", "shm", "files", "verbs", "clock", "versions"] and names[-1] == "device"
    assert f" {tmp_path} on " in ended.stdout, "the nearest folder that is there"
    found = checks_of(report)
    cores = len(os.sched_getaffinity(0))
    assert f", {cores} cores" in found["cpu"]["found"] and "sdtune 0." in found["versions"]["found"]
    total = int(re.search(r"MemTotal: *(\d+)", Path("/proc/meminfo").read_text())[1]) / (1 << 20)
    assert f" of {total:.1f} GiB" in found["memory"]["found"]


def test_doctor_warns_of_a_run_folder_in_memory() -> None:
    report = json.loads(run(["doctor", "--machine", "--json", "--output", "/dev/shm/runs"]).stdout)
    disk = checks_of(report)["disk"]
    assert disk["status"] == "warn" and "/dev/shm on tmpfs" in disk["found"] and "--output" in disk["advice"]


def test_doctor_fails_where_no_run_can_work(machine: StubbedMachine) -> None:
    folder = machine.root / "proc"
    folder.mkdir()
    (folder / "meminfo").write_text("MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n")
    code, report = doctor(machine.without_driver())
    assert code == 2 and report["device"] == "cpu"
    assert checks_of(report)["memory"] == {"name": "memory", "status": "fail", "found": "0.5 GiB free of 1.0 GiB",
                                           "advice": "too little even for the bundled base: end other programs or take a larger machine"}


def test_machine_and_photos_contradict_each_other() -> None:
    ended = run(["doctor", "--machine", "--images", str(ME)])
    assert ended.returncode == 2
    assert ended.stderr.startswith("sdtune: error: --machine: examines no photos")


LOADED = """
import sdtune
maps = open("/proc/self/maps").read()
print("loaded" if "libtorch_cuda.so" in maps else "not loaded")
"""


def test_python_loads_cuda_before_anything_computes_where_a_gpu_is_usable(machine: StubbedMachine) -> None:
    needs_kernels()

    def loaded(environment: dict[str, str], code: str = LOADED) -> str:
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                               env={**os.environ, **environment})
        return ended.stdout.strip()

    assert loaded(machine.environment("NVIDIA L4=8.9")) == "loaded"
    assert loaded(machine.environment("Tesla V100=7.0")) == "not loaded"
    assert loaded(machine.without_driver()) == "not loaded"


# What is imported and computed first. The backward pass on the CPU asks LibTorch for an accelerator, and LibTorch keeps the answer.
BACKWARD = """
import numpy
vae = sdtune.AutoencoderKL.from_pretrained(sys.argv[1], device="cpu")
image = numpy.zeros((1, 3, 16, 16), numpy.float32)
assert sdtune.testing.vae_gradients(vae, image, image)
"""
ORDERS = {"torch first": "import torch, sdtune", "torch after": "import sdtune, torch", "CPU work first": f"import sdtune{BACKWARD}import torch"}
# Asked last: what the hooks of LibTorch's CUDA part answer, and what its default ones would not.
ANSWERS = """
import torch
print(torch.accelerator.current_accelerator(check_available=False), torch.backends.cudnn.version() is not None)
"""


@pytest.mark.parametrize("order", ORDERS)
def test_libtorch_has_not_remembered_that_there_is_no_gpu(machine: StubbedMachine, order: str) -> None:
    needs_kernels()

    def answers(environment: dict[str, str]) -> str:
        ended = subprocess.run([sys.executable, "-W", "ignore", "-c", f"import sys\n{ORDERS[order]}\n{ANSWERS}", str(VAE)],
                               capture_output=True, text=True, env={**os.environ, **environment}, check=False)
        return ended.stdout.strip() or ended.stderr[-400:]

    assert answers(machine.environment("NVIDIA L4=8.9")) == "cuda True"
    # Where sdtune sees no usable GPU it loads nothing: the mutant of the order that counts.
    remembered = answers(machine.without_driver())
    assert (remembered == "cuda True") == (order != "CPU work first"), remembered


def test_a_gpu_with_too_little_memory_is_told_the_preset_that_fits(machine: StubbedMachine, tmp_path: Path) -> None:
    needs_kernels()
    base = tmp_path / "sd15"
    (base / "unet").mkdir(parents=True)
    (base / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
    (base / "unet" / "config.json").write_text(json.dumps({"block_out_channels": [320], "cross_attention_dim": 768}))
    needs = dict(line.split(": ") for line in (ROOT / "configs" / "preset_memory.yaml").read_text().splitlines() if line[0] != "#")
    warning = (f"sdtune: warning: device: has 16.0 GiB of memory, and the values of full_sd15.yaml need "
               f"{float(needs['full_sd15.yaml']):.1f} GiB by calculation; --config full_sd15_16gb.yaml needs "
               f"{float(needs['full_sd15_16gb.yaml']):.1f} GiB")
    assert float(needs["full_sd15_16gb.yaml"]) < 16 < float(needs["full_sd15.yaml"]) < 24

    def warnings(gib: int, *more: str) -> list[str]:
        environment = machine.environment("NVIDIA T4=7.5") | {"SDTUNE_STUB_MEMORY": str(gib << 30)}
        ended = run(["check", "--images", str(ME), "--base", str(base), "--json", *more], **environment)
        return [f"sdtune: warning: {found['where']}: {found['what']}; {found['hint']}" 
                for found in json.loads(ended.stdout)["warnings"] if found["where"] == "device"]

    assert warnings(16) == [warning]
    assert warnings(24) == []
    assert warnings(16, "--config", "full_sd15_16gb.yaml") == []
    card = math.ceil(float(needs["full_sd15.yaml"]))  # holds it, and leaves less than a driver and fragments take
    assert len(warnings(card)) == 1
    assert warnings(16, "--micro-batch", "1") == []  # the run decides itself what it needs

"""What --dtype auto and mixed_precision: auto mean on a CPU: the table of processors, `sdtune tune-machine`, resuming and ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sdtune
from ports import free_port
from program import ROOT, SDTUNE, run
from test_ranks import start_rank

PHOTOS = ROOT / "examples" / "me"
ENTRY = "processors:\n  - {{vendor: {vendor}, family: '{family}', model: '{model}', isa: avx512f, sample: {sample}, train: {train}, measured: test{more}}}\n"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a processor that no table knows, with a user's table that is not there yet."""
    (tmp_path / "root" / "proc").mkdir(parents=True)
    (tmp_path / "root" / "proc" / "cpuinfo").write_text("vendor_id\t: Test\ncpu family\t: 1\nmodel\t\t: 2\nmodel name\t: T\nflags\t\t: avx2 avx512f\n")
    return {"SDTUNE_SYSTEM_ROOT": str(tmp_path / "root"), "SDTUNE_PROCESSORS": str(tmp_path / "own" / "processors.yaml")}


def know(machine: dict[str, str], sample: str = "float32", train: str = "float32", more: str = "") -> None:
    """Writes the table that says so of the processor; `more`: further keys, each behind a comma."""
    table = Path(machine["SDTUNE_PROCESSORS"])
    table.parent.mkdir(exist_ok=True)
    table.write_text(ENTRY.format(vendor="Test", family=1, model=2, sample=sample, train=train, more=more))


def sample(output: Path, machine: dict[str, str], *words: str) -> tuple[int, str]:
    ended = run(["sample", "--model", "portrait-64", "--prompt", "a person", "--steps", "2", "--device", "cpu", "--output", str(output), *words], **machine)
    return ended.returncode, ended.stderr


def words(output: Path, *more: str) -> list[str]:
    return ["train", "--images", str(PHOTOS), "--output", str(output), "--no-with-prior-preservation", "--max-train-steps", "2", "--device", "cpu",
            "--checkpointing-steps", "1", *more]


def record(output: Path) -> dict:
    return json.loads((output / "run.json").read_text())


def test_auto_is_what_the_table_says_and_default_is_float32(machine: dict[str, str], tmp_path: Path) -> None:
    code, said = sample(tmp_path / "unknown", machine, "--dtype", "auto")
    assert code == 0 and ", float32\n" in said
    assert "--dtype: no table says what Test family 1 model 2, avx512f is fastest in, so auto is float32: `sdtune tune-machine`" in said
    know(machine, sample="bfloat16")
    code, said = sample(tmp_path / "known", machine, "--dtype", "auto")
    assert code == 0 and ", bfloat16\n" in said and "tune-machine" not in said
    code, said = sample(tmp_path / "default", machine)
    assert code == 0 and ", float32\n" in said and "tune-machine" not in said


def test_eval_and_train_warn_too(machine: dict[str, str], tmp_path: Path) -> None:
    said = "no table says what Test family 1 model 2, avx512f is fastest in"
    (tmp_path / "empty").mkdir()  # no photos, which is found once the base is loaded
    ended = run(["eval", "--model", "portrait-64", "--subject", "3", "--instance-prompt", "a photo of a person", "--quick", "--steps", "1", "--device", "cpu",
                 "--dtype", "auto", "--output", str(tmp_path / "eval"), "--images", str(tmp_path / "empty")], **machine)
    assert f"sdtune: warning: --dtype: {said}" in ended.stderr, ended.stderr
    ended = run(words(tmp_path / "run", "--mixed-precision", "auto", "--max-train-steps", "1"), **machine)
    assert ended.returncode == 0 and f"mixed_precision: {said}" in ended.stderr, ended.stderr


def test_a_broken_table_is_one_line_and_doctor_fails(machine: dict[str, str], tmp_path: Path) -> None:
    know(machine, sample="float64")
    code, said = sample(tmp_path / "images", machine, "--dtype", "auto")
    assert code == 2 and "processors.yaml:2: sample is not allowed (got float64) (allowed: float32, bfloat16)" in said
    assert len(said.strip().splitlines()) == 1 and not (tmp_path / "images").exists()
    code, said = sample(tmp_path / "images", machine)  # float32, by the implementations that the table names
    assert code == 2 and "processors.yaml:2" in said and not (tmp_path / "images").exists()
    for command in ("check", "train"):  # in float32 as well, and before anything is written
        ended = run([command, *words(tmp_path / "run")[1:]], **machine)
        assert ended.returncode == 2 and "processors.yaml:2" in ended.stdout + ended.stderr and not (tmp_path / "run").exists(), ended.stderr
    ended = run(["doctor", "--machine", "--json"], **machine)
    (check,) = [each for each in json.loads(ended.stdout)["checks"] if each["name"] == "formats"]
    assert ended.returncode == 2 and check["status"] == "fail" and "processors.yaml:2" in check["found"]
    ended = run(["tune-machine"], **machine)
    assert ended.returncode == 2 and "processors.yaml:2" in ended.stderr


def test_tune_machine_writes_the_table_that_auto_reads(machine: dict[str, str], tiny_base: Path, tmp_path: Path) -> None:
    ended = run(["tune-machine", "--rounds", "1", "--base", str(tiny_base), "--json"], **machine)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["processor"] == "Test family 1 model 2, avx512f" and report["table"] == machine["SDTUNE_PROCESSORS"]
    times = {each["dtype"]: each for each in report["times"]}
    for use, unit in (("sample", "image_seconds"), ("train", "step_seconds")):
        gains = times["bfloat16"][unit] < 0.95 * times["float32"][unit]
        assert report[use] == ("bfloat16" if gains else "float32")
    code, said = sample(tmp_path / "images", machine, "--dtype", "auto")
    assert code == 0 and f", {report['sample']}\n" in said and "tune-machine" not in said
    for tried in report["tried"]:
        (key,) = tried.keys() - {"image_ratio", "step_ratio", "taken"}
        assert tried["taken"] == (tried["image_ratio"] * tried["step_ratio"] < 0.95**2)
        assert (report[key] == tried[key]) == tried["taken"]
    assert {"attention", "convolutions", "layout"} <= {key for tried in report["tried"] for key in tried}
    written = Path(machine["SDTUNE_PROCESSORS"]).read_text()
    assert all(f"{key}: {report[key]}\n" in written for key in ("sample", "train", "attention", "products", "convolutions", "layout", "convolutions_3x3", "attention_bfloat16",
                                                              "attention_backward_bfloat16", "convolutions_bfloat16", "attention_heads", "attention_causal", "small_products", "convolutions_3x3_bfloat16",
                                                              "attention_exponential_bfloat16", "convolutions_3x3_kernels"))


@pytest.mark.parametrize(("given", "message"), [(["--rounds", "0"], "--rounds"), (["--images", "nowhere"], "nowhere"), (["--base", "nowhere"], "nowhere")])
def test_tune_machine_refuses_bad_input(machine: dict[str, str], given: list[str], message: str) -> None:
    ended = run(["tune-machine", *given], **machine)
    assert ended.returncode == 2 and message in ended.stderr and not Path(machine["SDTUNE_PROCESSORS"]).exists()


def test_a_run_records_its_format_and_keeps_it_when_resumed(machine: dict[str, str], tmp_path: Path) -> None:
    know(machine, train="bfloat16")
    output = tmp_path / "run"
    ended = run(words(output, "--mixed-precision", "auto"), **machine)
    assert ended.returncode == 0, ended.stderr
    assert (record(output)["dtype"], record(output)["processor"]) == ("bfloat16", "Test family 1 model 2, avx512f")
    know(machine, train="float32")
    ended = run(words(output, "--mixed-precision", "auto", "--resume-from-checkpoint", "latest", "--max-train-steps", "3"), **machine)
    assert ended.returncode == 0, ended.stderr
    assert record(output)["dtype"] == "bfloat16"
    ended = run(words(tmp_path / "fresh", "--mixed-precision", "auto"), **machine)
    assert ended.returncode == 0 and record(tmp_path / "fresh")["dtype"] == "float32"


def test_a_resumed_run_keeps_the_implementations_of_its_checkpoint(machine: dict[str, str], tmp_path: Path) -> None:
    """They are in run.json, and a run that was begun with others ends with the bytes of one that had them throughout."""
    libraries = {"attention": "library", "products": "mkl", "convolutions": "library", "layout": "contiguous", "convolutions_3x3": "direct",
                 "attention_bfloat16": "float32", "attention_backward_bfloat16": "float32", "convolutions_bfloat16": "library",
                 "attention_heads": "multiples_of_8", "attention_causal": "library", "small_products": "library",
                 "convolutions_3x3_bfloat16": "direct", "attention_exponential_bfloat16": "long", "convolutions_3x3_kernels": "whole"}
    ours = {"attention": "tiled", "convolutions": "patches", "layout": "channels_last", "convolutions_3x3": "winograd", "attention_bfloat16": "pairs",
            "attention_backward_bfloat16": "pairs", "convolutions_bfloat16": "patches", "attention_heads": "multiples_of_4", "attention_causal": "tiled", "small_products": "registers",
            "convolutions_3x3_bfloat16": "winograd", "attention_exponential_bfloat16": "short", "convolutions_3x3_kernels": "panels"}
    know(machine, more="".join(f", {key}: {value}" for key, value in libraries.items()))
    whole, resumed, other = tmp_path / "whole", tmp_path / "resumed", tmp_path / "other"
    for output, steps in ((whole, "3"), (resumed, "2")):
        ended = run(words(output, "--max-train-steps", steps), **machine)
        assert ended.returncode == 0, ended.stderr
        assert record(output)["implementation"] == libraries
    know(machine)
    ended = run(words(resumed, "--resume-from-checkpoint", "latest", "--max-train-steps", "3"), **machine)
    assert ended.returncode == 0, ended.stderr
    assert record(resumed)["implementation"] == libraries
    ended = run(words(other, "--max-train-steps", "3"), **machine)
    assert ended.returncode == 0 and record(other)["implementation"].items() >= ours.items()
    weights = {output: (output / "model/unet/diffusion_pytorch_model.safetensors").read_bytes() for output in (whole, resumed, other)}
    assert weights[whole] == weights[resumed] and weights[whole] != weights[other]


def test_ranks_of_different_kinds_must_name_a_format(machine: dict[str, str], tmp_path: Path) -> None:
    """Each rank would sum gradients of another format."""
    port, ranks = free_port(), []
    for rank, train in enumerate(("float32", "bfloat16")):
        own = {**machine, "SDTUNE_PROCESSORS": str(tmp_path / str(rank) / "processors.yaml")}
        know(own, train=train)
        ranks.append(start_rank(rank, 2, port, [str(SDTUNE), *words(tmp_path / "run", "--mixed-precision", "auto")], **own))
    errors = "".join(rank.communicate(timeout=120)[1] for rank in ranks)
    assert [rank.returncode for rank in ranks] == [2, 2], errors
    assert "mixed_precision: auto is no on rank 0 and bf16 on rank 1" in errors and "name a format for all" in errors


def test_python_takes_auto(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    for load in (lambda: sdtune.StableDiffusionPipeline.from_pretrained("portrait-64", dtype="auto", device="cpu"),
                 lambda: sdtune.UNet2DConditionModel.from_pretrained(str(ROOT / "models/portrait-64/unet"), dtype="auto", device="cpu")):
        with pytest.warns(RuntimeWarning, match="no table says what Test family 1 model 2, avx512f is fastest in"):
            assert load() is not None
    know(machine, sample="bfloat16")
    assert sdtune.StableDiffusionPipeline.from_pretrained("portrait-64", dtype="auto", device="cpu").dtype == "bfloat16"
    assert sdtune.StableDiffusionPipeline.from_pretrained("portrait-64", device="cpu").dtype == "float32"

"""`sdtune check`: planted faults, all found in one go, each in one line that names key or file and cause."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from program import SDTUNE, run
from safetensors.torch import load_file, save_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "backpack_dog"


def listing(folder: Path) -> dict[str, str]:
    """Every file and folder below, with hashes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = "link to " + os.readlink(path)
        else:
            found[name] = "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of its own. Needs the right to mount, which CI and containers of ours have."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "sdtune-test", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def break_tensors(base: Path) -> None:
    """Takes a tensor from the UNet and reshapes one of the VAE."""
    unet = base / "unet" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(unet)
    del tensors["conv_in.weight"]
    save_file(tensors, unet)
    vae = base / "vae" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(vae)
    tensors["decoder.conv_out.bias"] = tensors["decoder.conv_out.bias"].new_zeros(5)
    save_file(tensors, vae)


def spoil_tokenizer(base: Path) -> None:
    """A vocabulary with a token that the text encoder has no row for."""
    config = base / "text_encoder" / "config.json"
    settings = json.loads(config.read_text())
    settings["vocab_size"] = 49_000
    config.write_text(json.dumps(settings))


def make_photos(folder: Path) -> None:
    """Two good photos and five bad ones."""
    folder.mkdir()
    good = (EXAMPLES / "00.jpg").read_bytes()
    (folder / "good.jpg").write_bytes(good)
    (folder / "captioned.jpg").write_bytes((EXAMPLES / "01.jpg").read_bytes())
    (folder / "captioned.txt").write_text("a very " * 100 + "long caption")
    (folder / "cut.jpg").write_bytes(good[: len(good) // 2])
    (folder / "empty.png").write_bytes(b"")
    (folder / "page.jpg").write_bytes(b"<!DOCTYPE html><html><body>404</body></html>")
    (folder / "movie.jpg").write_bytes(b"GIF89a" + bytes(100))
    shutil.copyfile(EXAMPLES / "02.jpg", folder / "latin.jpg")
    (folder / "latin.txt").write_bytes(b"caf\xe9")


@pytest.fixture()
def planted(tmp_path: Path, tiny_sd1: Path) -> Path:
    """A folder with a broken base, bad photos and a bad configuration."""
    shutil.copytree(tiny_sd1, tmp_path / "base")
    break_tensors(tmp_path / "base")
    spoil_tokenizer(tmp_path / "base")
    make_photos(tmp_path / "photos")
    (tmp_path / "a file").write_text("not a folder")
    (tmp_path / "me.yaml").write_text(f"""\
images: {tmp_path}/photos
base: {tmp_path}/base
device: cpu
learning_rat: 1.0e-4
gradient_accumulation_steps: many
adam_epsilon: .nan
lr_scheduler: sawtooth
resolution: 63
with_prior_preservation: true
class_data_dir: {tmp_path}/a file
mixed_precision: fp16
train_batch_size: 4
micro_batch: 3
num_class_images: 99999999999999999999
instance_prompt: {"very " * 100}person
""")
    return tmp_path


# What must be said: a pattern for the place (key or file), and one for the cause, of one line each.
FAULTS = {
    "wrong key, with the near one": (r"me\.yaml:4", r"learning_rat.*did you mean learning_rate"),
    "wrong type": (r"me\.yaml:5", r"gradient_accumulation_steps must be an integer \(got many"),
    "not a number": (r"me\.yaml:6", r"adam_epsilon.*\.nan"),
    "unknown scheduler": (r"me\.yaml:7", r"lr_scheduler.*sawtooth; allowed: one of linear, cosine"),
    "overflow": (r"me\.yaml:14", r"num_class_images.*does not fit"),
    "negative number": (r"--max-train-steps", r"out of range \(got -3"),
    "unknown flag, with the near one": (r"--centre-crop", r"did you mean --center-crop"),
    "resolution not divisible": (r"resolution", r"got 63; allowed: multiples of 4"),
    "fp16 on a CPU": (r"mixed_precision", r"fp16 needs a GPU"),
    "micro_batch does not divide the batch": (r"micro_batch", r"got 3"),
    "class folder is a file": (r"class_data_dir", r"not a folder"),
    "too long prompt": (r"instance_prompt", r"too long \(got 101 tokens; allowed: 75"),
    "too long caption": (r"captioned", r"too long"),
    "truncated JPEG": (r"cut\.jpg", r"."),
    "empty PNG": (r"empty\.png", r"empty"),
    "a web page named .jpg": (r"page\.jpg", r"."),
    "an animation named .jpg": (r"movie\.jpg", r"GIF"),
    "caption that is not UTF-8": (r"latin\.txt", r"UTF-8"),
    "missing tensor": (r"base/unet", r"lacks tensor conv_in\.weight"),
    "wrong shape": (r"base/vae", r"decoder\.conv_out\.bias"),
    "tokenizer of another model": (r"base/tokenizer", r"does not belong|text encoder"),
    "text encoder of another vocabulary": (r"base/text_encoder", r"shape.*token_embedding"),
    "resume path absent": (r"resume_from_checkpoint", r"no such folder"),
    "no space for two checkpoints": (r"output", r"no space for 2 checkpoints and the model"),
}


def arguments_of(folder: Path, output: Path) -> list[str]:
    return ["--config", str(folder / "me.yaml"), "--max-train-steps", "-3", "--centre-crop", "--output",
            str(output / "run"), "--resume-from-checkpoint", str(folder / "nowhere")]


def error_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("sdtune: error: ")]


def test_planted_faults_are_found_in_one_go_and_nothing_changes(planted: Path) -> None:
    """check names them all; train refuses with the same lines, exit 2, and leaves the disk as it was."""
    assert len(FAULTS) >= 20
    with small_disk(planted / "disk", 64) as disk:
        before = listing(planted)
        checked = run(["check", *arguments_of(planted, disk)])
        assert checked.returncode == 2
        assert checked.stdout == ""
        lines = error_lines(checked.stderr)
        assert checked.stderr.splitlines() == lines, "every line is an error line"
        for name, (place, cause) in FAULTS.items():
            found = [line for line in lines if re.search(place, line) and re.search(cause, line)]
            assert len(found) == 1, f"{name}: {len(found)} lines among\n" + "\n".join(lines)
        assert len(lines) == len(FAULTS), "\n".join(lines)

        trained = run(["train", *arguments_of(planted, disk)])
        assert trained.returncode == 2
        assert error_lines(trained.stderr) == lines
        as_json = run(["check", "--json", *arguments_of(planted, disk)])
        assert listing(planted) == before
    report = json.loads(as_json.stdout)
    assert as_json.returncode == 2 and report["ok"] is False
    assert len(report["problems"]) == len(lines)
    assert all(problem["where"] and problem["what"] for problem in report["problems"])


def numbers_of(base: Path, *parts: str) -> int:
    """In the weights of these parts."""
    return sum(tensor.numel() for part in parts for file in (base / part).glob("*.safetensors") for tensor in load_file(file).values())


def test_the_room_that_is_asked_for_is_what_is_written(tiny_sd1: Path, tmp_path: Path) -> None:
    """A LoRA writes itself and not the base, 8-bit moments take a quarter, prodigy's states twice as much as AdamW's."""
    (tmp_path / "photos").mkdir()
    shutil.copyfile(EXAMPLES / "00.jpg", tmp_path / "photos" / "00.jpg")
    unet = numbers_of(tiny_sd1, "unet")
    model = 4 * numbers_of(tiny_sd1, "unet", "vae", "text_encoder")
    spare = 4 << 20  # headers, tokenizer, moments of small tensors
    assert unet > 1 << 19, "the differences below are larger than what is spare"
    lines = {}
    for name, bytes_of_disk, options in (("lora", model // 2, ["--method", "lora"]),
                                         ("small", 100_000, ["--method", "lora"]),
                                         ("8bit", 2 * 7 * unet + model + spare, ["--optimizer", "adamw_8bit"]),
                                         ("layers", 2 * 7 * unet + model + spare, ["--trainable-layers", "to_q"]),
                                         ("adamw", 2 * 11 * unet + model, []),
                                         ("prodigy", 2 * 18 * unet + model, ["--optimizer", "prodigy", "--learning-rate", "1",
                                                                             "--text-encoder-lr", "1"])):
        with small_disk(tmp_path / name, bytes_of_disk // 1024) as disk:
            done = run(["check", "--images", str(tmp_path / "photos"), "--base", str(tiny_sd1), "--output", str(disk / "run"),
                        "--device", "cpu", "--with-prior-preservation=false", "--train-text-encoder=false", "--max-train-steps",
                        "200", "--checkpointing-steps", "100", *options])
        lines[name] = error_lines(done.stderr)
        assert done.returncode == (2 if lines[name] else 0), done.stderr
    fits = {name for name, found in lines.items() if not found}
    assert fits == {"lora", "8bit", "layers"}, lines
    for name in ("small", "adamw", "prodigy"):
        assert len(lines[name]) == 1 and "no space for 2 checkpoints and the model on the disk of" in lines[name][0], lines[name]


# Faults that exclude those above: one each.
SINGLE_FAULTS = {
    "no photo folder": (["--images", "nowhere"], r"nowhere"),
    "folder without photos": (["--images", "hollow"], r"hollow"),
    "no images at all": (None, r"images: is not given"),
    "run in the output folder": (["--output", "taken"], r"taken.*run"),
    "output below a file": (["--output", "photo.jpg/run"], r"output: .*(not a folder|written)"),
    "absent base": (["--base", "nowhere"], r"nowhere"),
    "hub id that is not in the cache": (["--base", "someone/model"], r"someone/model"),
    "unknown device": (["--device", "tpu"], r"device: is unknown \(got tpu"),
    "no such GPU": (["--device", "cuda:99"], r"device: "),
    "layers that no model has": (["--method", "lora", "--lora-layers", "nowhere"], r"lora_layers: .*nowhere"),
    "unknown sharding": (["--fsdp"], r"--fsdp: .*not supported"),
    "config file absent": (["--config", "none.yaml"], r"none\.yaml: cannot be read"),
    "two spellings with one value each are one option": (["--learning_rate", "x"], r"--learning-rate: must be a number"),
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory, tiny_folder) -> Path:
    folder = tmp_path_factory.mktemp("check")
    (folder / "photos").mkdir()
    shutil.copyfile(EXAMPLES / "00.jpg", folder / "photos" / "00.jpg")
    shutil.copyfile(EXAMPLES / "00.jpg", folder / "photo.jpg")
    (folder / "hollow").mkdir()
    (folder / "taken" / "checkpoints").mkdir(parents=True)
    (folder / "base").symlink_to(tiny_folder("sd1"))
    return folder


GOOD = ["--images", "photos", "--base", "base", "--output", "out", "--device", "cpu"]


@pytest.mark.parametrize("name", SINGLE_FAULTS)
def test_single_faults(workplace: Path, name: str) -> None:
    """One fault gives one line, from check and from train, and train writes nothing."""
    options, pattern = SINGLE_FAULTS[name]
    words = GOOD[2:] if options is None else [*GOOD, *options]
    before = listing(workplace)
    for command in ("check", "train"):
        done = run([command, *words], cwd=workplace)
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert re.search(pattern, done.stderr), done.stderr
    assert listing(workplace) == before


@pytest.mark.parametrize(("options", "said"), [
    (["--lr-warmup-steps", "101"], "got 101; allowed: at most 100, the steps by 100 a photo"),
    (["--lr-warmup-steps", "4", "--num-train-epochs", "3"], "got 4; allowed: at most 3, the steps by num_train_epochs"),
    (["--lr-warmup-steps", "100"], ""),
    (["--lr-warmup-steps", "101", "--lr-scheduler", "constant"], ""),
])
def test_a_warm_up_beyond_the_steps_by_photos(options: list[str], said: str, workplace: Path) -> None:
    """Without max_train_steps the one photo says how many steps there are; constant has no warm-up, and a warning says so."""
    lines = 1 if said or "constant" in options else 0
    for command in ("check", "train") if said else ("check",):
        done = run([command, *GOOD, "--lr-scheduler", "cosine", *options], cwd=workplace)
        assert done.returncode == (2 if said else 0), done.stderr
        assert len(done.stderr.splitlines()) == lines and said in done.stderr, done.stderr
        assert ("lr_warmup_steps: has no effect" in done.stderr) == ("constant" in options), done.stderr
    assert not (workplace / "out").exists()


def test_nothing_to_resume_is_exit_3(workplace: Path) -> None:
    """A missing checkpoint has its own code, so that launchers can tell it from a typing error."""
    done = run(["train", *GOOD, "--resume-from-checkpoint", "latest"], cwd=workplace)
    assert done.returncode == 3 and "resume_from_checkpoint" in done.stderr
    assert not (workplace / "out").exists()


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_good_configuration_passes(workplace: Path, tiny_folder, family: str) -> None:
    """No false alarm, nothing written."""
    before = listing(workplace)
    done = run(["check", *GOOD, "--base", str(tiny_folder(family))], cwd=workplace)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = run(["check", "--json", *GOOD], cwd=workplace)
    said = json.loads(report.stdout)
    assert (said["ok"], said["problems"], said["warnings"], said["probe"]) == (True, [], [], None)
    assert listing(workplace) == before


def test_options_without_effect_are_named(workplace: Path) -> None:
    """The text encoder was not trained, without a word, though its rate was given; train says the same, and goes on."""
    said = "text_encoder_lr: has no effect unless train_text_encoder is true (got 1.0e-05)"
    done = run(["check", *GOOD, "--text-encoder-lr", "1e-5"], cwd=workplace)
    assert done.returncode == 0 and said in done.stderr, done.stderr
    report = json.loads(run(["check", "--json", *GOOD, "--text-encoder-lr", "1e-5"], cwd=workplace).stdout)
    assert report["ok"] is True and [warning["where"] for warning in report["warnings"]] == ["text_encoder_lr"]
    fine = run(["check", *GOOD, "--text-encoder-lr", "1e-5", "--train-text-encoder"], cwd=workplace)
    assert fine.returncode == 0 and "no effect" not in fine.stderr


PROBE = [*GOOD, "--resolution", "32", "--train-batch-size", "1", "--class-num-inference-steps", "1", "--probe"]


def test_the_report_has_what_the_probe_found(workplace: Path) -> None:
    before = listing(workplace)
    done = run(["check", "--json", *PROBE], cwd=workplace)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True and report["problems"] == []
    probe = report["probe"]
    assert probe["loss"] > 0 and probe["images_per_s"] > 0 and probe["peak_bytes"] > 1_000_000
    text = run(["check", *PROBE], cwd=workplace)
    assert text.returncode == 0 and f"ok: one step done, loss {probe['loss']:.6g}, " in text.stdout, "the same step"
    assert listing(workplace) == before


@pytest.mark.parametrize("curve", ["cosine", "constant_with_warmup"])
def test_a_probe_is_shorter_than_the_warm_up(workplace: Path, curve: str) -> None:
    """The one step was refused for a warm-up that fits the run."""
    done = run(["check", "--json", *PROBE, "--max-train-steps", "200", "--lr-scheduler", curve, "--lr-warmup-steps", "50"], cwd=workplace)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["probe"]["loss"] > 0


def test_a_probe_that_fails_is_not_ok(workplace: Path) -> None:
    """Files may not grow, as on a full disk, which only the step itself meets; the report says so, and the exit code stays its own."""
    before = listing(workplace)
    done = subprocess.run([str(SDTUNE), "check", "--json", *PROBE], cwd=workplace, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, restore_signals=False,  # SIGXFSZ stays ignored, as Python has it
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    report = json.loads(done.stdout)
    assert done.returncode == 5, done.stderr
    assert report["ok"] is False and report["probe"] is None
    (problem,) = report["problems"]
    (line,) = error_lines(done.stderr)
    assert line.startswith(f"sdtune: error: {problem['where']}: {problem['what']}")
    assert listing(workplace) == before


def test_program_is_the_built_one() -> None:
    """The tests above are about this checkout's program."""
    assert SDTUNE.is_file()

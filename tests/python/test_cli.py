"""The command line as users and scripts see it: help, errors, exit codes, images and JSON."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from program import ROOT, SDTUNE, run

COMMANDS = ("train", "sample", "demo", "check", "doctor", "prepare", "plan", "prove", "inspect", "render", "pretrain", "eval", "convert",
            "merge", "fetch", "push", "tune-machine", "launch", "schema", "completion")


def test_help_lists_the_commands_that_exist() -> None:
    """--help names each command and nothing that is not there yet."""
    done = run(["--help"])
    assert done.returncode == 0
    assert re.findall(r"^  ([\w-]+) ", done.stdout, re.MULTILINE) == list(COMMANDS)
    assert run([]).returncode == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_command_help_says_default_unit_and_range(command: str) -> None:
    """Grouped, within the terminal's width, without control characters."""
    done = run([command, "--help"], COLUMNS="80")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{done.stdout.splitlines()[0]}\n\nusage: sdtune {command}")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.isascii() and done.stdout.replace("\n", "").isprintable()
    if command == "train":
        for said in ("--learning-rate X", "default: ", "x >= 1", "steps", "--instance-data-dir", "\nPhotos:"):
            assert said in done.stdout, said


def test_help_of_a_command_by_either_word() -> None:
    assert run(["help", "merge"]).stdout == run(["merge", "--help"]).stdout
    assert run(["help", "help"]).stdout == run(["help"]).stdout == run(["--help"]).stdout


def test_version() -> None:
    """One line: name and version."""
    assert re.fullmatch(r"sdtune \d+\.\d+\.\d+\n", run(["--version"]).stdout)


@pytest.mark.parametrize(("words", "said"), [
    (["trian"], f"trian: unknown command (allowed: {', '.join(COMMANDS)}); did you mean train?"),
    (["sample", "--promt", "a"], "--promt: unknown option; did you mean --prompt?"),
    (["sample", "--prompt"], "--prompt: has no value"),
    (["sample", "--prompt", "a", "--steps", "0"], "--steps: is out of range (got 0; allowed: 1 <= x <= 1000)"),
    (["sample", "--prompt", "a", "--guidance_scale", "nan"], "--guidance-scale: must be finite (got nan"),
    (["sample", "--prompt", "a", "--sampler", "eular"], "--sampler: is unknown, nearest is euler (got eular"),
    (["sample", "--prompt", "two", "words"], "words: unexpected word"),
    (["sample"], "--prompt: is not given"),
    (["sample", "--prompt", "a", "--compare", "x"], "--compare: needs --grid"),
    (["sample", "--prompt", "a", "--references", "x"], "--references: needs --grid"),
    (["sample", "--prompt", "a", "--grid", "sheet.jpg"], "--grid: does not end with .png (got sheet.jpg)"),
    (["demo", "--", "--output", "elsewhere"], "--output: is given behind --, where demo would not look for the model"),
    (["demo", "--", "--output_dir=elsewhere"], "--output: is given behind --, where demo would not look for the model"),
    (["inspect"], "inspect: takes one path (got 0)"),
    (["inspect", "/nonexistent"], "/nonexistent: is not there"),
    (["inspect", "x" * 300], f"{'x' * 300}: cannot be read: File name too long"),
    (["convert", "--model", "gone.ckpt", "--output", "out"], "gone.ckpt: is not there"),
    (["convert", "--model", "gone", "--output", "out"], "gone: there is no such folder"),
    (["tune-machine", "--output", "/dev/null/x.yaml"], "--output: /dev/null is not a folder; choose another --output"),
    (["tune-machine", "--output=~/x.yaml"], "--output: begins with ~, which only a shell"),
    (["tune-machine", "--output", "."], "--output: is a folder (got .); name a file"),
    (["sample", "--prompt", "a", "--output", "/dev/null"], "--output: /dev/null is not a folder; choose another --output"),
    (["sample", "--prompt", "a", "--output=~/x"], "--output: begins with ~, which only a shell replaces (got ~/x); write the whole path"),
    (["convert", "--model", str(ROOT / "models" / "portrait-64"), "--output=~/x.safetensors"], "--output: begins with ~, which only a shell"),
    (["convert", "--model", str(ROOT / "models" / "portrait-64"), "--lora", "a.safetensors", "--output=~/x.safetensors"], "--output: begins with ~, which only a shell"),
    (["render", "--output=~/x"], "--output: begins with ~, which only a shell"),
    (["render", "--output", "/dev/null/x"], "--output: /dev/null is not a folder; choose another --output"),
    (["render", "--contact-sheet=~/x.png"], "--contact-sheet: begins with ~, which only a shell"),
    (["doctor", "--images", ".", "--contact-sheet=~/x.png"], "--contact-sheet: begins with ~, which only a shell"),
    (["doctor", "--images", ".", "--contact-sheet", "/dev/null/x.png"], "--contact-sheet: /dev/null is not a folder; choose another --contact-sheet"),
    (["prove", "--output=~/x"], "--output: begins with ~, which only a shell"),
    (["prove", "--output", ""], "--output: is empty; name a folder"),
    (["pretrain", "--output=~/x"], "--output: begins with ~, which only a shell"),
    (["pretrain", "--output", "/dev/null"], "--output: /dev/null is not a folder; choose another --output"),
    (["sample", "--prompt", "a", "--output", ""], "--output: is empty; name a folder"),
    (["sample", "--prompt", "a", "--grid", "/dev/null/all.png"], "--grid: /dev/null is not a folder; choose another --grid"),
    (["sample", "--prompt", "--no-ai-mark"], "--prompt: has no value: --no-ai-mark follows"),
    (["sample", "--prompt", "a", "--no-ai-mark=false"], "--no-ai-mark: takes no value (got false)"),
    (["train", "--learning-rat", "1"], "--learning-rat: unknown option; did you mean --learning-rate?"),
])
def test_errors_are_one_line_with_exit_2(words: list[str], said: str, tmp_path: Path) -> None:
    """`sdtune: error: KEY: what is wrong`, nothing on stdout."""
    done = run(words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"sdtune: error: {said}" in done.stderr
    assert all(line.startswith("sdtune: error: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize("words", [["launch", "--nproc", "2", "--", "train"], ["demo", "--", "--max-train-steps", "1"],
                                   ["plan", "--family", "sd15", "--photos", "3"]])
def test_a_pipe_is_no_configuration_of_what_reads_it_twice(words: list[str], tmp_path: Path) -> None:
    """It was empty at the second reading, and the defaults counted without a word."""
    typed = f'"{SDTUNE}" {" ".join(words)} --config <(echo "seed: 3")'
    done = subprocess.run(["bash", "-c", typed], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert "sdtune: error: --config: is no file on a disk, and this command reads it twice (got /dev/fd/" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_of_temporary_files_is_said_with_its_variable(tmp_path: Path) -> None:
    """The path alone says nothing to whom a machine's settings are foreign; exit code 5 was a disk's."""
    done = run(["tune-machine"], cwd=tmp_path, TMPDIR=str(tmp_path / "absent"))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "sdtune: error: TMPDIR: names no folder: No such file or directory; unset it, or make the folder\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["demo", "launch"])
def test_help_behind_the_dashes_is_that_of_train(command: str, tmp_path: Path) -> None:
    """demo printed it and went on to generate images of a model that was not there."""
    done = run([command, "--", *(["train"] if command == "launch" else []), "--help"], cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == run(["train", "--help"]).stdout
    assert not list(tmp_path.iterdir())


def test_reference_is_current() -> None:
    """docs/reference.md is what the program declares now."""
    assert run(["reference"]).stdout == (ROOT / "docs" / "reference.md").read_text(), "run scripts/make_reference.py"


def test_sample_generates_what_its_seed_says(tiny_sd1: Path, tmp_path: Path) -> None:
    """Image i uses seed + i: generated alone it is the same, and the file says how it was made."""
    words = ["sample", "--model", str(tiny_sd1), "--prompt", "A photo of sks, person!", "--steps", "3", "--seed", "5"]
    both = run([*words, "--num-images", "2", "--output", "both"], cwd=tmp_path)
    assert both.returncode == 0, both.stderr
    assert both.stdout.splitlines() == ["both/a-photo-of-sks-person_5.png", "both/a-photo-of-sks-person_6.png"]
    assert str(tiny_sd1) in both.stderr
    alone = run([*words, "--seed", "6", "--output", "alone"], cwd=tmp_path)
    pictures = [np.asarray(Image.open(tmp_path / path)) for path in (*both.stdout.split(), *alone.stdout.split())]
    assert pictures[0].shape == (32, 32, 3)
    assert np.array_equal(pictures[1], pictures[2])
    assert not np.array_equal(pictures[0], pictures[1])
    text = Image.open(tmp_path / both.stdout.split()[1]).text["parameters"]
    assert text.startswith("A photo of sks, person!\nSteps: 3, Sampler: PLMS, CFG scale: 7.5, Seed: 6, Size: 32x32")


def test_sample_equals_diffusers(tiny_sd1: Path, tmp_path: Path) -> None:
    """The program's image is diffusers', to one step of 255; another seed's is not."""
    import torch
    from diffusers import DPMSolverMultistepScheduler, StableDiffusionPipeline
    done = run(["sample", "--model", str(tiny_sd1), "--prompt", "a cat", "--negative-prompt", "dog", "--steps", "6",
                "--seed", "3", "--num-images", "2", "--sampler", "dpm++2m_karras", "--output", "."], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pipeline = StableDiffusionPipeline.from_pretrained(tiny_sd1, safety_checker=None)
    pipeline.scheduler = DPMSolverMultistepScheduler.from_config(pipeline.scheduler.config, use_karras_sigmas=True)
    pipeline.set_progress_bar_config(disable=True)
    theirs = np.asarray(pipeline("a cat", negative_prompt="dog", num_inference_steps=6,
                                 generator=torch.Generator("cpu").manual_seed(3)).images[0], dtype=int)
    ours, other = (np.asarray(Image.open(tmp_path / path), dtype=int) for path in done.stdout.split())
    assert np.abs(ours - theirs).max() <= 1
    assert np.abs(other - theirs).max() > 10


@pytest.mark.long
def test_a_second_demo_names_its_own_sheet(tmp_path: Path) -> None:
    """The run is written anew, and what the first demo showed stays beside it."""
    short = ["--max-train-steps", "1", "--num-class-images", "1", "--class-num-inference-steps", "2"]
    said = [run(["demo", "--output", "run", "--device", "cpu", "--", *short], cwd=tmp_path) for _ in range(2)]
    assert [done.returncode for done in said] == [0, 0], said[1].stderr
    assert [done.stderr.splitlines()[-1] for done in said] == ["the sheet is run/sheet.png", "the sheet is run/sheet-2.png"]
    assert (tmp_path / "run/sheet.png").is_file() and (tmp_path / "run/sheet-2.png").is_file()
    assert json.loads((tmp_path / "run/run.json").read_text())["attempts"][0]["last_step"] == 1


@pytest.mark.long
@pytest.mark.parametrize("words", [["--base", "portrait-64"], ["--config", "other.yaml"]])
def test_a_demo_of_another_base_compares_with_that_base(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("base: portrait-64\n")
    short = ["--max-train-steps", "1", "--num-class-images", "1", "--class-num-inference-steps", "2"]
    done = run(["demo", "--output", "run", "--device", "cpu", "--", *words, *short], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "portrait-64: image 1 of 6" in done.stderr and "portrait-128: image" not in done.stderr


def test_sample_never_overwrites(tiny_sd1: Path, tmp_path: Path) -> None:
    """The same image again gets another name."""
    words = ["sample", "--model", str(tiny_sd1), "--prompt", "a", "--steps", "1", "--output", "."]
    assert [run(words, cwd=tmp_path).stdout for _ in range(2)] == ["./a_0.png\n", "./a_0-2.png\n"]


def test_sample_shows_photos_another_model_and_this_one_in_a_grid(tiny_sd1: Path, tmp_path: Path) -> None:
    """Rows: photos, the other model's images of each prompt, this model's; a column a prompt. Small images are enlarged
    by a whole number."""
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (50, 100), (255, 0, 0)).save(tmp_path / "photos" / "a.png")
    (tmp_path / "prompts.txt").write_text("a cat\na dog\n")
    words = ["sample", "--model", str(tiny_sd1), "--compare", str(tiny_sd1), "--references", "photos", "--prompts",
             "prompts.txt", "--steps", "2", "--num-images", "2", "--grid", "sheets/all.png"]
    done = run(words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *pictures, sheet = done.stdout.splitlines()
    assert len(pictures) == 4 and sheet == "sheets/all.png"
    cells = np.asarray(Image.open(tmp_path / sheet))
    side, gap = 192, 4
    height = (cells.shape[0] - gap) // 5  # with its caption
    assert cells.shape[1] == gap + 2 * (side + gap)

    def cell(row: int, column: int) -> np.ndarray:
        top, left = gap + row * height, gap + column * (side + gap)
        return cells[top:top + side, left:left + side]

    assert np.array_equal(cell(0, 0)[side // 2, side // 2], (255, 0, 0)) and (cell(0, 0)[:, 5] == 255).all()
    assert (cell(0, 1) == 255).all()  # one photo, two columns
    for column, prompt in enumerate(("a-cat", "a-dog")):
        for image in range(2):
            drawn = Image.open(tmp_path / "samples" / f"{prompt}_{image}.png").resize((side, side), Image.Resampling.LANCZOS)
            assert np.array_equal(cell(1 + image, column), np.asarray(drawn))  # the same model on both sides
            assert np.array_equal(cell(3 + image, column), np.asarray(drawn))
    assert run(words, cwd=tmp_path).stdout.splitlines()[-1] == "sheets/all-2.png"


def test_sample_takes_the_newest_finished_run(tiny_sd1: Path, tmp_path: Path) -> None:
    """runs/*/model with a model_index.json, the newest of them; neither a run without one nor what pretrain wrote counts."""
    for age, name in ((200, "old"), (100, "new"), (50, "pretrained")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        if name != "pretrained":
            (tmp_path / "runs" / name / "run.json").write_text("{}")
        (tmp_path / "runs" / name / "model").mkdir()
        for part in tiny_sd1.iterdir():
            (tmp_path / "runs" / name / "model" / part.name).symlink_to(part)
        index = tmp_path / "runs" / name / "model" / "model_index.json"
        text = index.read_text()
        index.unlink()
        index.write_text(text)
        os.utime(index, (time.time() - age, time.time() - age))
    (tmp_path / "runs" / "begun" / "checkpoints").mkdir(parents=True)
    done = run(["sample", "--prompt", "a", "--steps", "1"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "runs/new/model (newest finished run under runs/)" in done.stderr
    of_run = run(["sample", "--prompt", "a", "--steps", "1", "--model", "runs/old", "--compare", "runs/new", "--grid",
                  "both.png"], cwd=tmp_path)
    assert "runs/old/model" in of_run.stderr and of_run.returncode == 0


def test_sample_reads_yaml_and_flags_win(tiny_sd1: Path, tmp_path: Path) -> None:
    """--config FILE.yaml first, then flags; its faults have file and line."""
    (tmp_path / "s.yaml").write_text(f"prompt: from the file\nsteps: 2\nseed: 8\nmodel: {tiny_sd1}\n")
    done = run(["sample", "--config", "s.yaml", "--seed", "9"], cwd=tmp_path)
    assert done.stdout == "samples/from-the-file_9.png\n", done.stderr
    (tmp_path / "s.yaml").write_text("prompt: a\nstep: 2\nseed: x\n")
    bad = run(["sample", "--config", "s.yaml"], cwd=tmp_path)
    assert bad.returncode == 2
    assert "s.yaml:2: unknown key step; did you mean steps?" in bad.stderr and "s.yaml:3: seed must be" in bad.stderr


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_inspect_model(tiny_folder, family: str) -> None:
    """Architecture, parameters, dtype and prediction type are those that diffusers reports."""
    import torch
    from diffusers import DiffusionPipeline
    folder = tiny_folder(family)
    found = json.loads(run(["inspect", str(folder), "--json"]).stdout)
    pipeline = DiffusionPipeline.from_pretrained(folder)
    assert found["kind"] == "diffusers model folder"
    assert found["pipeline"] == type(pipeline).__name__
    assert found["prediction_type"] == pipeline.scheduler.config.get("prediction_type", "epsilon")
    assert found["resolution"] == pipeline.unet.config.sample_size * pipeline.vae_scale_factor
    assert found["problems"] == []
    for name, part in found["components"].items():
        module = getattr(pipeline, name)
        assert part["class"] == type(module).__name__
        assert part["parameters"] == sum(parameter.numel() for parameter in module.parameters())
        assert part["dtype"] == "float32" and module.dtype == torch.float32
        assert part["missing"] == part["unexpected"] == part["wrong_shape"] == []
    human = run(["inspect", str(folder)])
    assert human.returncode == 0 and "prediction_type: " in human.stdout


def test_inspect_other_things(tiny_sd1: Path, tmp_path: Path) -> None:
    """A weight file, a part, a LoRA, an image folder, and what is none of them."""
    import torch
    from safetensors.torch import save_file
    weights = tiny_sd1 / "unet" / "diffusion_pytorch_model.safetensors"
    assert json.loads(run(["inspect", str(weights), "--json"]).stdout)["kind"] == "UNet2DConditionModel"
    assert json.loads(run(["inspect", str(tiny_sd1 / "vae"), "--json"]).stdout)["class"] == "AutoencoderKL"
    lora = tmp_path / "lora.safetensors"
    save_file({"unet.a.lora_A.weight": torch.zeros(4, 8), "unet.a.lora_B.weight": torch.zeros(8, 4)}, lora)
    found = json.loads(run(["inspect", str(lora), "--json"]).stdout)
    assert "LoRA" in found["kind"] and found["rank"] == [4]
    photos = json.loads(run(["inspect", str(ROOT / "examples" / "backpack_dog"), "--json"]).stdout)
    assert photos["kind"] == "image folder" and photos["images"] == 5 and photos["problems"] == []
    torch.save({"a": torch.zeros(1)}, tmp_path / "model.bin")
    refused = run(["inspect", str(tmp_path / "model.bin")])
    assert refused.returncode == 2 and "model.bin" in refused.stderr and refused.stderr.count("\n") == 1


def test_closed_and_full_stdout(tiny_sd1: Path) -> None:
    """A reader that goes away is no fault; a full disk is one of storage."""
    reader = subprocess.Popen([str(SDTUNE), "reference"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None and reader.stderr is not None
    reader.stdout.close()
    assert reader.wait(60) == 0 and reader.stderr.read() == b""
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(SDTUNE), "inspect", str(tiny_sd1)], stdout=full, stderr=subprocess.PIPE, text=True,
                              check=False)
    assert done.returncode == 5 and "stdout: cannot be written" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_file_of_the_run(closed: str, tiny_sd1: Path, tmp_path: Path) -> None:
    """The number of a closed stream was that of the first file that was opened, and the lines of the run went in there."""
    words = ["train", "--images", str(ROOT / "examples" / "backpack_dog"), "--base", str(tiny_sd1), "--output", "run", "--device", "cpu",
             "--resolution", "32", "--max-train-steps", "1", "--report-to", "none", "--report-images", "0"]
    typed = " ".join(f"'{word}'" for word in [str(SDTUNE), *words])
    done = subprocess.run(["bash", "-c", f"{typed} {closed}"], cwd=tmp_path, capture_output=True, timeout=300, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    files = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert files and not [path for path, content in files.items() if b"steps    1, batch 1" in content]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_stops_sampling(tiny_sd1: Path, tmp_path: Path, number: signal.Signals, code: int) -> None:
    """The first signal ends it at the next step, with the code that names the signal; images generated so far stay."""
    words = [str(SDTUNE), "sample", "--model", str(tiny_sd1), "--prompt", "a", "--num-images", "100000", "--output", "."]
    program = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert program.stdout is not None
    first = program.stdout.readline().strip()  # it is generating
    program.send_signal(number)
    assert program.wait(60) == code
    Image.open(tmp_path / first).load()


def test_torch_errors_are_short(tiny_sd1: Path, tmp_path: Path) -> None:
    """Out of memory is exit 4 and one line, without a C++ stack trace."""
    limited = ("import resource, os, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
               "os.execv(sys.argv[1], sys.argv[1:])")
    words = ["sample", "--model", str(tiny_sd1), "--prompt", "a", "--steps", "1", "--width", "256", "--height", "256",
             "--num-images", "1024", "--batch", "1024", "--output", "."]
    done = subprocess.run([sys.executable, "-c", limited, str(SDTUNE), *words], cwd=tmp_path, capture_output=True,
                          text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120, check=False)
    assert done.returncode == 4, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert len(errors) == 1 and "memory" in errors[0]
    assert "frame #" not in done.stderr

"""What users of other trainers complain about, each once as the user would meet it. The names carry the place in the list
of complaints and the thread; numbers 7, 8, 11 and 12 stand where their features are tested:
test_precision, tests/train/run/micro_batch_test.cpp, test_data, test_lora_training; 13 follows with its feature.

More thorough tests of the same things stand where the things are (test_resume, test_training, test_precision, ...).
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from PIL import Image
from program import SDTUNE, run
from training_reference import small_material

UNET = "model/unet/diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small base and four photos."""
    return small_material(tmp_path_factory.mktemp("complaints"), photos=4)


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--learning-rate=1e-4",
            "--train-batch-size=2", "--max-train-steps=6", "--checkpointing-steps=3", "--report-to=none", *options]


def train(*arguments: object, **environment: str) -> Path:
    """Trains to the end and returns the run folder."""
    material, output, *options = arguments
    ended = run(words(material, output, *options), **environment)
    assert ended.returncode == 0, ended.stderr
    return output


def metrics(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def forget_second_half(finished: Path, copy: Path) -> Path:
    """The run as it was after three of its six steps, but for what it wrote since into the log."""
    shutil.copytree(finished, copy)
    shutil.rmtree(copy / "checkpoints" / "step-00000006", ignore_errors=True)
    shutil.rmtree(copy / "model")
    return copy


def test_complaint_01_resume_resumes_kohya_1959(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Not from step 0 over the trained weights: only what is left is trained, to the same bytes."""
    whole = train(material, tmp_path / "whole")
    resumed = train(material, forget_second_half(whole, tmp_path / "half"), "--resume-from-checkpoint=latest")
    assert [line["step"] for line in metrics(resumed)] == [1, 2, 3, 4, 5, 6]
    assert (resumed / UNET).read_bytes() == (whole / UNET).read_bytes()


def test_complaint_02_half_precision_resumes_diffusers_5004(material: tuple[Path, Path], tmp_path: Path) -> None:
    """float32 master weights and the loss scale are in the checkpoint."""
    emulate = {"SDTUNE_EMULATE_FP16": "1"}
    whole = train(material, tmp_path / "whole", "--mixed-precision=fp16", **emulate)
    resumed = train(material, forget_second_half(whole, tmp_path / "half"), "--mixed-precision=fp16",
                    "--resume-from-checkpoint=latest", **emulate)
    assert (resumed / UNET).read_bytes() == (whole / UNET).read_bytes()


def test_complaint_03_order_and_rate_after_resume_accelerate_4071(material: tuple[Path, Path], tmp_path: Path) -> None:
    """The same photos, noise and learning rate as if nothing had happened: no cosine that climbs again."""
    whole = train(material, tmp_path / "whole", "--lr-scheduler=cosine")
    resumed = train(material, forget_second_half(whole, tmp_path / "half"), "--lr-scheduler=cosine",
                    "--resume-from-checkpoint=latest")
    for key in ("lr", "loss"):
        assert [line[key] for line in metrics(resumed)] == [line[key] for line in metrics(whole)]
    rates = [line["lr"] for line in metrics(whole)]
    assert rates == sorted(rates, reverse=True) and len(set(rates)) == 6


@pytest.mark.parametrize("text", ["false", "true"])
def test_complaints_04_05_accumulation_diffusers_3954_3651(material: tuple[Path, Path], tmp_path: Path, text: str) -> None:
    """The rate counts optimizer steps, and four rounds of one image are one round of four, text encoder or not."""
    options = ("--lr-scheduler=cosine", "--lr-warmup-steps=2", f"--train-text-encoder={text}")
    whole = train(material, tmp_path / "whole", *options, "--train-batch-size=4")
    rounds = train(material, tmp_path / "rounds", *options, "--train-batch-size=1", "--gradient-accumulation-steps=4")
    assert [line["lr"] for line in metrics(rounds)] == [line["lr"] for line in metrics(whole)]
    assert [line["loss"] for line in metrics(rounds)] == pytest.approx([line["loss"] for line in metrics(whole)], rel=1e-5)


def test_complaint_06_min_snr_with_prior_diffusers_5791(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Each sample has its own weight: batch 1, where others broadcast one over the batch, is half of batch 2."""
    options = ("--snr-gamma=5", "--with-prior-preservation=true", "--num-class-images=2", "--class-data-dir",
               str(tmp_path / "class"))
    pairs = train(material, tmp_path / "pairs", *options)
    singles = train(material, tmp_path / "singles", *options, "--train-batch-size=1", "--gradient-accumulation-steps=2")
    unweighted = train(material, tmp_path / "unweighted", *options[1:])
    losses = {name: [line["loss"] for line in metrics(output)]
              for name, output in (("pairs", pairs), ("singles", singles), ("unweighted", unweighted))}
    assert losses["singles"] == pytest.approx(losses["pairs"], rel=1e-5)
    assert losses["unweighted"] != pytest.approx(losses["pairs"], rel=1e-2)


def test_complaint_09_bad_files_are_named_together_autotrain_264(material: tuple[Path, Path], tmp_path: Path) -> None:
    """Before training, all of them; what is no image at all does not hurt; and they can be left out."""
    photos = shutil.copytree(material[1], tmp_path / "photos")
    (photos / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (photos / "notes.json").write_text("{}")
    (photos / "cut.png").write_bytes((photos / "00.png").read_bytes()[:200])
    (photos / "page.jpg").write_text("<html>login</html>")
    ended = run(words((material[0], photos), tmp_path / "run"))
    assert ended.returncode == 2 and not (tmp_path / "run").exists()
    errors = [line for line in ended.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert len(errors) == 2 and "cut.png" in ended.stderr and "page.jpg" in ended.stderr, ended.stderr
    skipping = train((material[0], photos), tmp_path / "run", "--on-bad-image=skip")
    assert [line["step"] for line in metrics(skipping)] == [1, 2, 3, 4, 5, 6]


def test_complaint_10_sideways_photos_kohya_1316(material: tuple[Path, Path], tmp_path: Path) -> None:
    """A photo that the camera turned by a flag trains as the upright one does, to the byte; HEIC is named with a way out."""
    turned = tmp_path / "turned"
    turned.mkdir()
    for photo in material[1].iterdir():
        exif = Image.Exif()
        exif[0x0112] = 6  # shown after a turn to the right
        Image.open(photo).transpose(Image.Transpose.ROTATE_90).save(turned / photo.name, exif=exif)
    upright = train(material, tmp_path / "upright")
    assert (train((material[0], turned), tmp_path / "run") / UNET).read_bytes() == (upright / UNET).read_bytes()
    (turned / "IMG_1.HEIC").write_bytes(b"\0\0\0\x18ftypheic" + bytes(16))
    ended = run(words((material[0], turned), tmp_path / "heic"))
    assert ended.returncode == 2 and "IMG_1.HEIC" in ended.stderr and "convert it to JPEG" in ended.stderr


def test_complaint_14_class_images_are_counted_kohya_205(material: tuple[Path, Path], tmp_path: Path) -> None:
    """They are generated up to the number asked for, the first lines say how many there are, and none is generated twice."""
    options = ("--with-prior-preservation=true", "--num-class-images=3", "--class-data-dir", str(tmp_path / "class"))
    said = []
    for name in ("first", "second"):
        ended = run(words(material, tmp_path / name, *options))
        assert ended.returncode == 0, ended.stderr
        said.append(ended.stderr)
        drawn = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "class").glob("*.png")}
        assert len(drawn) == 3
        if name == "first":
            before = drawn
    assert drawn == before
    assert all("3 class images" in text for text in said)


def test_complaint_15_stopping_loses_nothing_diffusers_1698(material: tuple[Path, Path], tmp_path: Path) -> None:
    """SIGTERM, as rented machines send it, saves; going on gives the bytes of a run that was left alone."""
    long = ("--max-train-steps=200", "--checkpointing-steps=1000")
    whole, stopped = train(material, tmp_path / "whole", *long), tmp_path / "stopped"
    process = subprocess.Popen([str(SDTUNE), *words(material, stopped, *long)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while process.poll() is None and not (stopped / "metrics.jsonl").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 143
    assert not (stopped / "model").exists()
    resumed = train(material, stopped, *long, "--resume-from-checkpoint=latest")
    assert (resumed / UNET).read_bytes() == (whole / UNET).read_bytes()


def test_defect_latest_without_a_checkpoint_does_not_start_afresh(material: tuple[Path, Path], tmp_path: Path) -> None:
    """diffusers prints a line and begins again; sdtune refuses and makes no folder."""
    ended = run(words(material, tmp_path / "run", "--resume-from-checkpoint=latest"))
    assert ended.returncode == 3 and not (tmp_path / "run").exists()


def test_defect_a_checkpoint_given_by_path_is_that_one(material: tuple[Path, Path], tmp_path: Path) -> None:
    """diffusers looks for the path's last part in the output folder."""
    whole = train(material, tmp_path / "whole")
    moved = shutil.copytree(whole / "checkpoints" / "step-00000003", tmp_path / "elsewhere" / "step-00000003")
    resumed = train(material, forget_second_half(whole, tmp_path / "half"), f"--resume-from-checkpoint={moved}")
    assert [line["step"] for line in metrics(resumed)] == [1, 2, 3, 4, 5, 6]
    assert (resumed / UNET).read_bytes() == (whole / UNET).read_bytes()

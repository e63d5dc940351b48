"""Options that no other file tests: what each of them changes. And that every option is tested somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from program import ROOT, run
from tiny_models import make_pipeline
from training_reference import write_base

PLAIN = ("--with-prior-preservation=false", "--train-text-encoder=false", "--train-batch-size=2", "--max-train-steps=3",
         "--learning-rate=1e-3", "--report-to=none", "--device=cpu", "--seed=4")
NANO = ("--design", "nano", "--num-images", "128", "--vae-steps", "4", "--vae-batch-size", "8", "--text-steps", "4",
        "--text-batch-size", "8", "--base-steps", "8", "--base-batch-size", "8", "--figure-images", "16", "--device", "cpu", "--stage", "base")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    return write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32),
                      layers_per_block=1, attention_head_dim=2)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Larger than the base's 32 px, one with a caption of its own."""
    folder = tmp_path_factory.mktemp("photos") / "photos"
    folder.mkdir()
    draw = np.random.default_rng(5)
    for index in range(3):
        Image.fromarray(draw.integers(0, 256, (80, 80, 3), dtype=np.uint8)).save(folder / f"{index}.png")
    (folder / "0.txt").write_text("a drawing of a tree")
    return folder


def train(base: Path, photos: Path, output: Path, *options: str) -> list[float]:
    """The losses."""
    ended = run(["train", "--base", str(base), "--images", str(photos), "--output", str(output), *PLAIN, *options])
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def model_of(output: Path) -> bytes:
    return (output / "model" / "unet" / "diffusion_pytorch_model.safetensors").read_bytes()


def test_use_captions(base: Path, photos: Path, tmp_path: Path) -> None:
    """Off: the prompt alone, as if no photo had a caption of its own."""
    with_captions = train(base, photos, tmp_path / "with")
    without = train(base, photos, tmp_path / "without", "--use-captions=false")
    bare = tmp_path / "bare"
    bare.mkdir()
    for photo in photos.glob("*.png"):
        (bare / photo.name).write_bytes(photo.read_bytes())
    assert without != with_captions
    assert without == train(base, bare, tmp_path / "none")


def test_image_interpolation_mode(base: Path, photos: Path, tmp_path: Path) -> None:
    """Other pixels after resizing, so other losses; 80 px photos become 32 px."""
    modes = ("lanczos", "bilinear", "bicubic")
    found = [train(base, photos, tmp_path / mode, f"--image-interpolation-mode={mode}") for mode in modes]
    assert found[0] == train(base, photos, tmp_path / "default")
    assert len({tuple(losses) for losses in found}) == 3
    ended = run(["train", "--base", str(base), "--images", str(photos), "--image-interpolation-mode", "best"])
    assert ended.returncode == 2 and "(got best; allowed: one of" in ended.stderr and "lanczos" in ended.stderr


def test_cache_latents_changes_no_number(base: Path, photos: Path, tmp_path: Path) -> None:
    cached = train(base, photos, tmp_path / "cached")
    fresh = train(base, photos, tmp_path / "fresh", "--cache-latents=false")
    assert fresh == pytest.approx(cached, rel=1e-5)


def test_bucket_no_upscale(base: Path, tmp_path: Path) -> None:
    """A photo of 24 x 16 px is trained at that size, or enlarged when it may be."""
    small = tmp_path / "small"
    small.mkdir()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (16, 24, 3), dtype=np.uint8)).save(small / "0.png")
    sizes = []
    for no_upscale in ("true", "false"):
        output = tmp_path / no_upscale
        train(base, small, output, "--enable-bucket", "--min-bucket-reso=8", "--resolution=32", "--train-batch-size=1",
              f"--bucket-no-upscale={no_upscale}")
        sheet = run(["prepare", "--base", str(base), "--images", str(small), "--output", str(tmp_path / f"p{no_upscale}"),
                     "--enable-bucket", "--min-bucket-reso=8", "--resolution=32", f"--bucket-no-upscale={no_upscale}",
                     "--device=cpu", "--with-prior-preservation=false"])
        assert sheet.returncode == 0, sheet.stderr
        sizes.append(Image.open(tmp_path / f"p{no_upscale}" / "contact_sheet.png").size)
    assert sizes[0] != sizes[1]
    assert model_of(tmp_path / "true") != model_of(tmp_path / "false")


def test_offload_ema_changes_no_number(base: Path, photos: Path, tmp_path: Path) -> None:
    for name, options in {"kept": (), "offloaded": ("--offload-ema",)}.items():
        train(base, photos, tmp_path / name, "--use-ema", *options)
    train(base, photos, tmp_path / "plain")
    assert model_of(tmp_path / "offloaded") == model_of(tmp_path / "kept")
    assert model_of(tmp_path / "kept") != model_of(tmp_path / "plain")


def test_validation_guidance_scale(base: Path, photos: Path, tmp_path: Path) -> None:
    """Other validation images, the same training."""
    found, losses = [], []
    for scale in ("1", "7.5", "12"):
        output = tmp_path / scale
        losses.append(train(base, photos, output, "--validation-prompt", "a photo of sks person", "--validation-steps=3",
                            "--num-validation-images=1", "--validation-inference-steps=2",
                            f"--validation-guidance-scale={scale}"))
        found.append({path.name: path.read_bytes() for path in sorted((output / "samples").rglob("*.png"))})
    assert losses[0] == losses[1] == losses[2]
    assert found[0].keys() == found[1].keys() and len(found[0]) > 0
    assert all(found[0][name] != found[1][name] != found[2][name] for name in found[0])


def test_the_guidance_of_validation_is_the_pipeline_s(tiny_sd1: Path, tiny_sdxl: Path, photos: Path, tmp_path: Path) -> None:
    """Unset it is 7.5, and 5 for SDXL, as diffusers' pipelines have it."""
    for model, scale in ((tiny_sd1, "7.5"), (tiny_sdxl, "5")):
        found = []
        for given in ((), (f"--validation-guidance-scale={scale}",), ("--validation-guidance-scale=6",)):
            output = tmp_path / f"{model.name}{len(found)}"
            train(model, photos, output, "--validation-prompt", "a photo of sks person", "--validation-steps=3",
                  "--num-validation-images=1", "--validation-inference-steps=2", *given)
            found.append([path.read_bytes() for path in sorted((output / "samples").rglob("*.png"))])
        assert found[0] == found[1] != found[2] and found[0]


def test_vae_slicing_changes_no_image(tiny_sd1: Path, tmp_path: Path) -> None:
    generated = []
    for slicing in ("true", "false"):
        output = tmp_path / slicing
        ended = run(["sample", "--model", str(tiny_sd1), "--prompt", "a person", "--num-images", "3", "--steps", "2",
                     "--device", "cpu", "--output", str(output), f"--vae-slicing={slicing}"])
        assert ended.returncode == 0, ended.stderr
        generated.append([np.asarray(Image.open(path)).astype(int) for path in sorted(output.glob("*.png"))])
    assert len(generated[0]) == 3
    assert max(np.abs(a - b).max() for a, b in zip(*generated)) <= 1


def pretrained(folder: Path, *options: str) -> dict[str, bytes]:
    ended = run(["pretrain", "--output", str(folder), *NANO, *options])
    assert ended.returncode == 0, ended.stderr
    return {path.parent.name: path.read_bytes() for path in (folder / "model").rglob("*.safetensors")}


@pytest.mark.long
def test_pretrain_rates_average_and_threads(tmp_path: Path) -> None:
    """Each rate moves its own stage and what follows it; the average and the head's weight only the base; threads nothing."""
    plain = pretrained(tmp_path / "plain", "--render-threads", "1")
    assert pretrained(tmp_path / "threads", "--render-threads", "2") == plain
    vae = pretrained(tmp_path / "vae", "--vae-learning-rate", "5e-4")
    assert vae["vae"] != plain["vae"] and vae["unet"] != plain["unet"]
    text = pretrained(tmp_path / "text", "--text-learning-rate", "5e-4")
    assert text["vae"] == plain["vae"] and text["text_encoder"] != plain["text_encoder"]
    for option in ("--base-average-decay=0.1", "--head-weight=1"):
        changed = pretrained(tmp_path / option, option)
        assert changed["vae"] == plain["vae"] and changed["unet"] != plain["unet"], option


@pytest.mark.long
def test_pretrain_classifier_and_evaluations(tmp_path: Path) -> None:
    """A portrait classifier of the asked steps and rate; the base is evaluated as often as asked, with the classifier that is there."""
    classifiers = []
    for rate in ("1e-3", "5e-4"):
        ended = run(["pretrain", "--output", str(tmp_path / rate), *NANO[:-1], "classifier", "--classifier-steps", "2",
                     "--classifier-learning-rate", rate])
        assert ended.returncode == 0, ended.stderr
        lines = (tmp_path / rate / "judge" / "metrics.jsonl").read_text().splitlines()
        assert json.loads(lines[-1])["step"] == 2
        classifiers.append((tmp_path / rate / "judge" / "model" / "judge.safetensors").read_bytes())
    assert classifiers[0] != classifiers[1]
    pretrained(tmp_path / "1e-3", "--evaluation-steps", "4", "--base-steps", "4")
    curve = [json.loads(line) for line in (tmp_path / "1e-3" / "base" / "curve.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in curve] == [4]


def test_every_option_is_named_in_a_test() -> None:
    """A new option brings a test of what it changes: at least one that names it."""
    reference = (ROOT / "docs" / "reference.md").read_text()
    options = set(re.findall(r"^\| `--([a-z0-9-]+)`", reference, re.MULTILINE))
    assert len(options) > 150
    texts = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*")
                      if path.suffix in {".py", ".cpp", ".h"})
    named = set(re.findall(r"[a-z0-9_]+", texts))
    flags = set(re.findall(r"--(?:no-)?([a-z0-9-]+)", texts))
    missing = sorted(option for option in options if option not in flags and option.replace("-", "_") not in named)
    assert missing == []


def test_no_number_is_read_by_the_locale() -> None:
    """A program that imports sdtune may have set a locale with a decimal comma: C's functions then read 0.15 as 0."""
    used = re.compile(r"\b(?:strtod|strtof|strtold|atof|stod|stof|stold|sscanf)\(")
    found = [f"{path.relative_to(ROOT)}: {line.strip()}" for layer in ("model", "train", "app", "python/src")
             for path in sorted((ROOT / layer).rglob("*.cpp")) for line in path.read_text().splitlines() if used.search(line)]
    assert found == []

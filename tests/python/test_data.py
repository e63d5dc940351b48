"""What a run is trained on: captions, folders, repeats, several subjects, buckets. Through the program, as a user meets it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from PIL import Image
from program import ROOT, run
from safetensors.torch import load_file
from test_ranks import launched, train_command
from tiny_models import make_pipeline
from training_reference import Reference, Settings, write_base, write_photos

import sdtune

UNET = "model/unet/diffusion_pytorch_model.safetensors"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    return write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32),
                      layers_per_block=1, attention_head_dim=2)


def write_shapes(folder: Path, *sizes: tuple[int, int]) -> Path:
    """A smooth random image of each size (width, height)."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(5)
    for index, size in enumerate(sizes):
        coarse = Image.fromarray(draw.integers(0, 256, (4, 4, 3), dtype=np.uint8))
        coarse.resize(size, Image.Resampling.BICUBIC).save(folder / f"{index:02d}.png")
    return folder


def train(base: Path, output: Path, *options: object, **environment: str) -> str:
    """Trains a few steps, and returns what the program said on the way."""
    ended = run(["train", "--base", str(base), "--output", str(output), "--device", "cpu",
                 "--train-text-encoder=false", "--learning-rate=1e-4", "--report-to=none",
                 *(str(option) for option in options)], **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def record(output: Path) -> dict:
    return json.loads((output / "run.json").read_text())


def losses(output: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


PLAIN = ("--with-prior-preservation=false", "--train-batch-size=2", "--max-train-steps=3")


def test_captions_come_from_text_file_table_or_folder(base: Path, tmp_path: Path) -> None:
    """Complaint 14's other half: what each photo is called can be read in run.json."""
    photos = write_photos(tmp_path / "me", 3, seed=0)
    (photos / "00.txt").write_text("sks person laughs")
    (photos / "metadata.jsonl").write_text('{"file_name": "01.png", "text": "[trigger] in a hat"}\n')
    shutil.copytree(write_photos(tmp_path / "more", 1, seed=1), photos / "4_sks person")
    train(base, tmp_path / "run", "--images", photos, *PLAIN)
    captions = {Path(entry["path"]).relative_to(photos).as_posix(): (entry["caption"], entry["repeats"])
                for entry in record(tmp_path / "run")["images"]}
    assert captions == {"00.png": ("sks person laughs", 1), "01.png": ("sks person in a hat", 1),
                        "02.png": ("a photo of sks person", 1), "4_sks person/00.png": ("sks person", 4)}


def test_complaint_14_says_what_an_epoch_is_kohya_gui_613(base: Path, tmp_path: Path) -> None:
    """Repeats x images, steps, and how many of the class images are used: printed, not guessed."""
    photos = tmp_path / "me"
    shutil.copytree(write_photos(tmp_path / "flat", 2, seed=0), photos / "10_sks person")
    said = train(base, tmp_path / "run", "--images", photos, "--with-prior-preservation", "--num-class-images=50",
                 "--class-data-dir", write_photos(tmp_path / "class", 50, seed=2), "--train-batch-size=2",
                 "--num-train-epochs=1", "--repeats=2")
    assert "one epoch is 2 photos x 20 of 10_sks person = 40 images, 20 steps of 2" in said
    assert "each step adds 2 class images: an epoch shows 40 of 50, and 1.25 epochs show all of them" in said
    assert len(losses(tmp_path / "run")) == 20


def test_several_subjects_in_one_run(base: Path, tmp_path: Path) -> None:
    """Each with its prompts, and with class images of its own where the prompts differ."""
    write_photos(tmp_path / "me", 2, seed=0)
    write_photos(tmp_path / "dog", 1, seed=1)
    config = tmp_path / "two.yaml"
    config.write_text(f"""
concepts:
  - images: {tmp_path}/me
    instance_prompt: a photo of sks person
    class_prompt: a photo of a person
    num_class_images: 3
  - instance_data_dir: {tmp_path}/dog
    instance_prompt: a photo of ohwx dog
    class_prompt: a photo of a dog
    num_class_images: 2
    repeats: 2
with_prior_preservation: true
""")
    output = tmp_path / "run"
    said = train(base, output, "--config", config, "--train-batch-size=2", "--max-train-steps=2")
    assert "one epoch is 2 photos of concept 1, 1 photo x 2 of concept 2 = 4 images, 2 steps of 2" in said
    assert [entry["caption"] for entry in record(output)["images"]] == ["a photo of sks person"] * 2 + [
        "a photo of ohwx dog"]
    prompts = [json.loads((output / "class_images" / name).read_text()) for name in ("manifest.json",
                                                                                   "2/manifest.json")]
    assert [(entry["prompt"], len(entry["images"])) for entry in prompts] == [("a photo of a person", 3),
                                                                             ("a photo of a dog", 2)]
    again = train(base, tmp_path / "again", "--config", output / "config.yaml", "--output", tmp_path / "again")
    assert losses(tmp_path / "again") == losses(output), again


def test_concepts_in_python_are_dicts() -> None:
    config = sdtune.TrainConfig(concepts=[{"images": "a", "repeats": 2}, {"images": "b"}])
    assert [json.loads(text) for text in config.concepts] == [{"images": "a", "repeats": 2}, {"images": "b"}]
    config.concepts = [{"images": Path("a"), "class_data_dir": Path("b")}]
    assert [json.loads(text) for text in config.concepts] == [{"images": "a", "class_data_dir": "b"}]


def test_bad_concepts_are_named(base: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("concepts:\n  - images: nowhere\n    repeats: 0\n    class_promt: x\n")
    ended = run(["check", "--base", str(base), "--config", str(tmp_path / "bad.yaml"), "--output",
                 str(tmp_path / "run")])
    assert ended.returncode == 2
    assert "concepts[1].repeats: is out of range (got 0; allowed: 1 <= x <= 10000)" in ended.stderr
    assert "did you mean class_prompt?" in ended.stderr


def best_bucket(width: int, height: int, resolution: int, low: int, high: int, step: int, no_upscale: bool,
                ) -> tuple[int, int]:
    """The rule as features say it: of all rectangles the one in which the whole photo would be shown largest."""
    sides = [side for side in range(step, high + 1, step) if side >= low]
    all_of_them = [(w, h) for w in sides for h in sides if w * h <= resolution * resolution]
    fitting = [(w, h) for w, h in all_of_them if not no_upscale or (w <= width and h <= height)]
    # By scale; then the one that crops less, then the wider one. Exact: both sides of a comparison are integers.
    return max(fitting or all_of_them, key=lambda size: (min(size[0] * height, size[1] * width), -size[0] * size[1],
                                                         size[0]))


@pytest.mark.parametrize(("no_upscale", "step", "low", "high"), [(True, 8, 32, 128), (False, 8, 32, 128),
                                                                (True, 16, 24, 96)])
def test_bucket_of_every_size(no_upscale: bool, step: int, low: int, high: int) -> None:
    """Every width and height from 1 to 200 at resolution 64, and no photo is enlarged that is large enough."""
    differs_from_fixed = 0
    for width in range(1, 201):
        for height in range(1, 201, 1 if width % 7 == 0 else 5):
            got = sdtune.choose_bucket(width, height, 64, low, high, step, no_upscale)
            assert got == best_bucket(width, height, 64, low, high, step, no_upscale), (width, height)
            assert got[0] * got[1] <= 64 * 64
            assert got[0] % step == 0 and got[1] % step == 0
            if no_upscale and min(width, height) >= -(-low // step) * step:
                assert got[0] <= width and got[1] <= height
            differs_from_fixed += got != (64, 64)
    assert differs_from_fixed > 1000, "a rule that always gives the square must fail"


def test_buckets_keep_shapes_and_say_so(base: Path, tmp_path: Path) -> None:
    photos = write_shapes(tmp_path / "me", (96, 48), (48, 96), (64, 64), (40, 90))
    said = train(base, tmp_path / "run", "--images", photos, "--enable-bucket", *PLAIN, "--max-train-steps=8")
    assert "note     buckets: " in said and "32x32 with 1 photo" in said
    assert len(losses(tmp_path / "run")) == 8
    train(base, tmp_path / "square", "--images", photos, *PLAIN, "--max-train-steps=8")
    assert losses(tmp_path / "run") != losses(tmp_path / "square")


def test_buckets_resume_exactly_and_do_not_depend_on_accumulation(base: Path, tmp_path: Path) -> None:
    """With class images, which stay squares."""
    photos = write_shapes(tmp_path / "me", (96, 48), (48, 96), (64, 64), (90, 50), (50, 90))
    words = ("--images", photos, "--enable-bucket", "--with-prior-preservation", "--num-class-images=4",
             "--class-data-dir", write_photos(tmp_path / "class", 4, seed=2), "--checkpointing-steps=3")
    whole = tmp_path / "whole"
    train(base, whole, *words, "--train-batch-size=2", "--max-train-steps=6")
    half = tmp_path / "half"
    shutil.copytree(whole, half)
    shutil.rmtree(half / "checkpoints" / "step-00000006", ignore_errors=True)
    shutil.rmtree(half / "model")
    train(base, half, *words, "--train-batch-size=2", "--max-train-steps=6", "--resume-from-checkpoint=latest")
    assert (half / UNET).read_bytes() == (whole / UNET).read_bytes()
    split = tmp_path / "split"
    train(base, split, *words, "--train-batch-size=1", "--gradient-accumulation-steps=2", "--max-train-steps=6")
    np.testing.assert_allclose(losses(split), losses(whole), rtol=1e-5)
    other = tmp_path / "other"
    train(base, other, *words, "--train-batch-size=2", "--max-train-steps=6", "--seed=4")
    assert not np.allclose(losses(other), losses(whole), rtol=1e-3), "another seed must give other losses"


def test_buckets_do_not_depend_on_ranks(base: Path, tmp_path: Path) -> None:
    photos = write_shapes(tmp_path / "me", (96, 48), (48, 96), (64, 64), (90, 50), (50, 90))
    words = ("--enable-bucket", "--max-train-steps=6", "--report-to=none", "--train-batch-size")
    train(base, tmp_path / "one", "--images", photos, "--with-prior-preservation=false", *words, 2)
    ended = launched(2, train_command(base, photos, tmp_path / "two", *words, "1"))
    assert ended.returncode == 0, ended.stderr
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=1e-5)
    train(base, tmp_path / "alone", "--images", photos, "--with-prior-preservation=false", *words, 1)
    assert not np.allclose(losses(tmp_path / "alone"), losses(tmp_path / "one"), rtol=1e-4), "the other rank's part is left out"


def test_buckets_with_class_images_and_recomputation(base: Path, tmp_path: Path) -> None:
    """A square photo goes through the UNet together with its class image, a wide one apart from it: then a gradient comes twice."""
    photos = write_shapes(tmp_path / "me", (96, 48), (64, 64), (48, 96))
    words = ("--enable-bucket", "--with-prior-preservation", "--num-class-images=4", "--class-data-dir", write_photos(tmp_path / "class", 4, seed=2),
             "--method=lora", "--lora-rank=4", "--max-train-steps=12", "--report-to=none")
    train(base, tmp_path / "plain", "--images", photos, *words, "--train-batch-size=2", "--micro-batch=1", "--gradient-checkpointing=false")
    ended = launched(2, train_command(base, photos, tmp_path / "ranks", *map(str, words), "--train-batch-size=1", "--gradient-checkpointing"))
    assert ended.returncode == 0, ended.stderr
    np.testing.assert_allclose(losses(tmp_path / "ranks"), losses(tmp_path / "plain"), rtol=1e-5)
    train(base, tmp_path / "rounds", "--images", photos, *words, "--train-batch-size=1", "--gradient-accumulation-steps=2", "--gradient-checkpointing",
          "--mixed-precision=bf16")
    assert len(losses(tmp_path / "rounds")) == 12


def test_a_photo_s_name_need_not_be_utf_8(base: Path, tmp_path: Path) -> None:
    """As an archive of an old system unpacks it; refused nowhere, and resumed."""
    photos, classes = write_photos(tmp_path / "me", 2, seed=0), write_photos(tmp_path / "class", 2, seed=2)
    for folder in (photos, classes):
        first = sorted(Path(folder).iterdir())[0]
        os.rename(first, os.fsencode(folder) + b"/Zo\xeb.png")
    words = ("--images", photos, "--with-prior-preservation", "--num-class-images=2", "--class-data-dir", classes, "--checkpointing-steps=2",
             "--train-batch-size=1")
    train(base, tmp_path / "run", *words, "--max-train-steps=3")
    train(base, tmp_path / "run", *words, "--max-train-steps=4", "--resume-from-checkpoint=latest")
    assert len(losses(tmp_path / "run")) == 4
    assert "Zo" in (tmp_path / "run" / "run.json").read_text(encoding="utf-8")


class WideReference(Reference):
    """The plain loop on photos of 96 x 48 in one bucket: resized by Pillow to cover it, cut in the middle."""

    bucket = (0, 0)  # width, height
    ids: tuple[int, ...] = ()  # original height and width, top, left, target height and width

    def encode(self, folder: Path) -> list[tuple[torch.Tensor, torch.Tensor]]:
        step = 2 ** (len(self.pipe.vae.config.block_out_channels) + len(self.pipe.unet.config.block_out_channels) - 2)
        width, height = self.bucket = best_bucket(96, 48, 32, max(16 // step * step, step), 64, step, True)
        scale = max(width / 96, height / 48)
        across, down = int(96 * scale), int(48 * scale)
        left, top = round((across - width) / 2), round((down - height) / 2)
        self.ids = (48, 96, top, left, height, width)
        moments = []
        for path in sorted(folder.glob("*.png")):
            photo = Image.open(path).convert("RGB").resize((across, down), Image.Resampling.LANCZOS)
            pixels = np.asarray(photo.crop((left, top, left + width, top + height)), np.float32)
            with torch.no_grad():
                latent = self.pipe.vae.encode(torch.from_numpy(pixels.transpose(2, 0, 1)[None] / 127.5 - 1)).latent_dist
            moments.append((latent.mean[0], latent.std[0]))
        return moments

    def predict(self, noisy: torch.Tensor, timesteps: torch.Tensor, prompts: list[str],
                models: tuple[UNet2DConditionModel, list[torch.nn.Module]] | None = None) -> torch.Tensor:
        assert models is None  # no loss against the base
        context, pooled = self.text_states(prompts, self.encoders)
        added = {"text_embeds": pooled, "time_ids": torch.tensor([self.ids] * len(prompts))}
        return self.pipe.unet(noisy, timesteps, context, added_cond_kwargs=added).sample


def test_sdxl_is_told_sizes_and_crop_of_its_buckets(tiny_sdxl: Path, tmp_path: Path) -> None:
    """The losses of the first steps against diffusers; swapped sizes are another loss."""
    photos = write_shapes(tmp_path / "me", *[(96, 48)] * 3)
    settings = Settings(learning_rate=0.0, train_batch_size=2, max_train_steps=3)
    reference = WideReference(tiny_sdxl, photos, None, settings)
    assert reference.bucket[0] > reference.bucket[1]
    train(tiny_sdxl, tmp_path / "run", "--images", photos, "--enable-bucket", "--resolution=32", "--seed=3",
          "--with-prior-preservation=false", "--train-batch-size=2", "--max-train-steps=3")
    with torch.no_grad():
        expected = float(reference.loss(0, [0, 1]))
        reference.ids = (96, 48, *reference.ids[2:])
        swapped = float(reference.loss(0, [0, 1]))
    assert losses(tmp_path / "run")[0] == pytest.approx(expected, rel=1e-5)
    assert swapped != pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("option", "words"), [
    ("--bucket-reso-steps=9", ("bucket_reso_steps", "got 9", "multiples of")),
    ("--min-bucket-reso=4096", ("min_bucket_reso", "got 4096", "at most resolution")),
    ("--max-bucket-reso=4", ("max-bucket-reso", "got 4", "8 <= x <= 8192")),
])
def test_bad_bucket_options_are_refused(base: Path, tmp_path: Path, option: str, words: tuple[str, ...]) -> None:
    photos = write_photos(tmp_path / "me", 1, seed=0)
    ended = run(["check", "--base", str(base), "--images", str(photos), "--output", str(tmp_path / "run"),
                 "--enable-bucket", option])
    assert ended.returncode == 2, ended.stderr
    for word in words:
        assert word in ended.stderr


def test_complaint_11_a_stale_cache_is_never_used_onetrainer_175(base: Path, tmp_path: Path) -> None:
    """What is on disk is found by content, preprocessing and weights: another photo of the same name is encoded anew."""
    photos = write_photos(tmp_path / "me", 3, seed=0)
    cache = tmp_path / "cache"
    words = ("--images", photos, *PLAIN)
    train(base, tmp_path / "without", *words)
    said = train(base, tmp_path / "first", *words, "--cache-dir", cache)
    assert "0 of 4 encoded images and captions are from" in said
    assert "4 of 4 encoded images" in train(base, tmp_path / "second", *words, "--cache-dir", cache)
    assert losses(tmp_path / "first") == losses(tmp_path / "without") == losses(tmp_path / "second")
    shutil.copy(photos / "00.png", photos / "02.png")
    assert "4 of 4 encoded images" in train(base, tmp_path / "copied", *words, "--cache-dir", cache), "by content"
    write_photos(tmp_path / "new", 3, seed=9)
    shutil.copy(tmp_path / "new" / "02.png", photos / "02.png")
    assert "3 of 4 encoded images" in train(base, tmp_path / "other photo", *words, "--cache-dir", cache)
    train(base, tmp_path / "other plain", *words)
    assert losses(tmp_path / "other photo") == losses(tmp_path / "other plain") != losses(tmp_path / "first")
    assert "1 of 4 encoded" in train(base, tmp_path / "small", *words, "--resolution=16", "--cache-dir", cache)


def test_damaged_cache_is_said_and_mended(base: Path, tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "me", 2, seed=0)
    cache = tmp_path / "cache"
    words = ("--images", photos, *PLAIN, "--cache-dir", cache)
    train(base, tmp_path / "first", *words)
    entry = sorted(cache.iterdir())[0]
    content = bytearray(entry.read_bytes())
    content[-3] ^= 0x40
    entry.write_bytes(content)
    said = train(base, tmp_path / "second", *words)
    assert f"{entry}: this cache entry is damaged, and is computed anew" in said
    assert "2 of 3 encoded images" in said
    assert losses(tmp_path / "first") == losses(tmp_path / "second")
    assert "3 of 3 encoded images" in train(base, tmp_path / "third", *words)


def test_tiled_encoding_is_diffusers(tmp_path: Path) -> None:
    """A photo of twice the VAE's sample_size, as diffusers' enable_tiling encodes it; and not as it encodes the whole."""
    photos, folder = write_shapes(tmp_path / "me", (128, 128)), ROOT / "models" / "portrait-64"
    words = ("--images", photos, *PLAIN, "--max-train-steps=1", "--resolution=128")
    with Image.open(photos / "00.png") as photo:
        pixels = torch.from_numpy(np.array(photo.convert("RGB"))).permute(2, 0, 1)[None] / 127.5 - 1
    vae = AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=torch.float32)
    with torch.no_grad():
        whole = vae.encode(pixels).latent_dist.mean
        vae.enable_tiling()
        tiled = vae.encode(pixels).latent_dist.mean
    assert (whole - tiled).abs().max() > 0.01
    cache = tmp_path / "cache"
    for name, expected in (("whole", whole), ("tiled", tiled)):
        said = train(folder, tmp_path / name, *words, f"--vae-tiling={str(name == 'tiled').lower()}", "--cache-dir", cache / name)
        assert "0 of 2 encoded images and captions" in said
        entry = next(found for found in map(load_file, (cache / name).iterdir()) if "mean" in found)
        assert (entry["mean"].reshape(expected.shape) - expected).abs().max() < 2e-4
    assert "0 of 2 encoded" in train(folder, tmp_path / "other", *words, "--vae-tiling", "--cache-dir", cache / "whole")


def test_prepare_leaves_what_train_needs(base: Path, tmp_path: Path) -> None:
    """Contact sheet, class images and encoded images in the run folder; training then encodes nothing."""
    photos = write_photos(tmp_path / "me", 2, seed=0)
    output = tmp_path / "run"
    words = ["--base", str(base), "--images", str(photos), "--output", str(output), "--device=cpu",
             "--train-text-encoder=false", "--with-prior-preservation", "--num-class-images=2", "--report-to=none"]
    ended = run(["prepare", *words])
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [str(output / "contact_sheet.png"), str(output / "cache")]
    assert Image.open(output / "contact_sheet.png").size[0] == 2 * 32 + 3 * 4
    assert len(list((output / "class_images").glob("*.png"))) == 2
    trained = run(["train", *words, "--max-train-steps=2"])
    assert trained.returncode == 0, trained.stderr
    assert "6 of 6 encoded images and captions are from" in trained.stderr
    bad = run(["prepare", *words, "--resolution=33"])
    assert bad.returncode == 2 and "resolution" in bad.stderr

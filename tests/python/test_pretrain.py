"""`sdtune pretrain` on its smallest design: the loss falls, a broken run ends in the same bytes, diffusers loads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionPipeline
from program import run
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parent.parent.parent
NANO = ["--design", "nano", "--num-pictures", "128", "--vae-steps", "40", "--vae-batch-size", "8", "--text-steps", "20", "--text-batch-size", "8", "--base-steps", "40",
        "--base-batch-size", "8", "--checkpointing-steps", "30", "--figure-images", "16", "--device", "cpu", "--stage", "base"]


def pretrain(folder: Path, *more: str) -> None:
    """Runs the command to its end or to its clock's."""
    done = run(["pretrain", "--output", str(folder), *NANO, *more])
    assert done.returncode == 0, done.stderr


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrain") / "nano"
    pretrain(folder)
    return folder


def losses(folder: Path, stage: str) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / stage / "metrics.jsonl").read_text().splitlines()]


def test_the_losses_fall(trained: Path) -> None:
    vae, base = losses(trained, "vae"), losses(trained, "base")
    assert vae[-1] < vae[0]
    assert base[-1] < base[0]


def test_a_run_that_the_clock_broke_ends_in_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    for _ in range(3):
        pretrain(tmp_path / "broken", "--minutes", "0.02")
    pretrain(tmp_path / "broken")
    assert files_of(tmp_path / "broken" / "model") == files_of(trained / "model")


def test_diffusers_loads_and_generates(trained: Path) -> None:
    pipeline = StableDiffusionPipeline.from_pretrained(trained / "model", dtype=torch.float32, safety_checker=None)
    images = pipeline("a photo of a person", num_inference_steps=2, output_type="np").images
    assert images.shape == (1, 64, 64, 3) and np.isfinite(images).all()
    assert pipeline.scheduler.config.prediction_type == "v_prediction"
    assert pipeline.scheduler.timesteps[0] == 999, "sampling begins at the last timestep"
    assert pipeline.scheduler.alphas_cumprod[-1] < 1e-6, "where nothing but noise is left"


@pytest.mark.parametrize("change, named", [(("--seed", "5"), "seed"), (("--snr-gamma", "5"), "snr_gamma"),
                                           (("--head-weight", "1"), "head_weight"),
                                           (("--base-learning-rate", "2e-3"), "base_learning_rate")])
def test_a_folder_of_another_run_is_refused(trained: Path, change: tuple[str, str], named: str) -> None:
    """What the numbers depend on may not change on the way."""
    before = files_of(trained / "model")
    done = run(["pretrain", "--output", str(trained), *NANO, *change])
    assert done.returncode == 2 and named in done.stderr, done.stderr
    assert files_of(trained / "model") == before


def test_checkpoints_tell_the_words_and_the_noise_they_were_trained_on(trained: Path) -> None:
    """Another version's checkpoints, of other captions or another schedule, are refused as another run's are."""
    settings = {stage: json.loads(next((trained / stage / "checkpoints").glob("*/state.json")).read_text())["settings"]
                for stage in ("text", "base")}
    assert settings["text"]["captions"] == settings["base"]["captions"] and "noise" in settings["base"]


@pytest.mark.long
def test_training_goes_on_from_a_model_that_is_there(trained: Path, tmp_path: Path) -> None:
    """Its autoencoder is taken over, its words and weights begun with, on people that it did not see, watched by a classifier that is there,
    and on the recipe's schedule, whatever its own was."""
    shutil.copytree(trained / "model", tmp_path / "old")
    path = tmp_path / "old" / "scheduler" / "scheduler_config.json"
    schedule = json.loads(path.read_text())
    path.write_text(json.dumps({**schedule, "rescale_betas_zero_snr": False, "timestep_spacing": "leading"}))
    begun = ("--initial-model", str(tmp_path / "old"), "--initial-judge", str(ROOT / "models" / "portrait-judge"))
    pretrain(tmp_path / "on", *begun, "--first-picture", "4000")
    assert len((tmp_path / "on" / "base" / "curve.jsonl").read_text().splitlines()) == 1
    assert sorted(path.name for path in (tmp_path / "on").iterdir()) == ["base", "latents", "model", "pictures"]
    old, new = ({name: load_file(folder / "model" / name / "diffusion_pytorch_model.safetensors") for name in ("vae", "unet")}
                for folder in (trained, tmp_path / "on"))
    assert all(torch.equal(old["vae"][key], new["vae"][key]) for key in old["vae"])
    assert not all(torch.equal(old["unet"][key], new["unet"][key]) for key in old["unet"])
    assert losses(tmp_path / "on", "base")[0] < losses(trained, "base")[0]
    assert json.loads((tmp_path / "on" / "model" / "scheduler" / "scheduler_config.json").read_text()) == schedule
    other = run(["pretrain", "--output", str(tmp_path / "on"), *NANO, "--first-picture", "4000"])
    assert other.returncode == 2 and "initial_model" in other.stderr


def test_the_classifier_starts_from_an_existing_one(trained: Path, tmp_path: Path) -> None:
    begun = ROOT / "models" / "portrait-judge"
    pretrain(tmp_path / "run", "--stage", "judge", "--initial-model", str(trained / "model"), "--initial-judge", str(begun), "--minutes", "0.00001")
    state = next((tmp_path / "run" / "judge" / "checkpoints").iterdir())
    saved = {key: value for path in state.glob("*.safetensors") for key, value in load_file(path).items()}
    old = load_file(begun / "judge.safetensors")
    found = [key for key in saved if key.removeprefix("master.") in old and torch.equal(saved[key], old[key.removeprefix("master.")].float())]
    assert len(found) >= len(old)


@pytest.mark.parametrize("words, named", [(("--initial-model", "nowhere"), "initial_model: is not a folder"),
                                          (("--initial-judge", "nowhere", "--stage", "judge"), "initial_classifier: is not a folder"),
                                          (("--initial-text-encoder", "nowhere"), "initial_text_encoder: is not a folder"),
                                          (("--initial-text-encoder", str(ROOT / "models" / "portrait-64")),
                                           "initial_text_encoder: has a text encoder of another size"),
                                          (("--initial-judge", str(ROOT / "models" / "portrait-judge"), "--stage", "judge", "--design", "portrait-128"),
                                           "initial_classifier: reads images of another size"),
                                          (("--vae-decoder-only",), "vae_decoder_only: has no autoencoder"),
                                          (("--first-picture", "3"), "first_image: is not the first image of a person")])
def test_what_cannot_be_begun_with_is_named(tmp_path: Path, words: tuple[str, ...], named: str) -> None:
    done = run(["pretrain", "--output", str(tmp_path / "run"), *NANO, *words])
    assert done.returncode == 2 and named in done.stderr, done.stderr


FINE = ["--design", "portrait-128", "--num-images", "64", "--features-images", "64", "--features-steps", "1", "--features-learning-rate", "1e-3", "--vae-steps", "2", "--vae-batch-size", "1",
        "--vae-adversarial-start", "1", "--text-steps", "1", "--text-batch-size", "4", "--device", "cpu"]


@pytest.mark.long
def test_portrait_128_hands_its_stages_on_without_their_checkpoints(tmp_path: Path) -> None:
    """Each finished stage's result stands for it; another base's words and text encoder are begun with."""
    words = ["--initial-text-encoder", str(ROOT / "models" / "portrait-64")]
    folder = tmp_path / "run"
    done = run(["pretrain", "--output", str(folder), *FINE, *words, "--stage", "vae"])
    assert done.returncode == 0, done.stderr
    state = next((folder / "vae" / "checkpoints").glob("step-*"))
    assert any("discriminator." in key for path in state.glob("*.safetensors") for key in load_file(path))
    handed = tmp_path / "handed"
    for stage in ("features", "vae"):
        (handed / stage).mkdir(parents=True)
        for name in ("result.json", "result.safetensors"):
            shutil.copy(folder / stage / name, handed / stage / name)
    shutil.copytree(folder / "pictures", handed / "pictures")
    on = run(["pretrain", "--output", str(handed), *FINE, *words, "--stage", "text"])
    assert on.returncode == 0, on.stderr
    assert not losses(handed, "features") and not losses(handed, "vae") and len(losses(handed, "text")) == 1
    old = load_file(ROOT / "models" / "portrait-64" / "text_encoder" / "model.safetensors")
    new = load_file(handed / "text" / "result.safetensors")
    name = "text_model.embeddings.token_embedding.weight"
    begun = float((new[f"text_encoder.{name}"] - old[name].float()).abs().max())
    assert 0 < begun < 0.01, "one step from the words of portrait-64"
    longer = run(["pretrain", "--output", str(handed), *FINE, *words, "--stage", "vae", "--vae-steps", "3"])
    assert longer.returncode == 3 and "vae" in longer.stderr and "other steps" in longer.stderr, longer.stderr


@pytest.mark.long
def test_the_decoder_alone_leaves_the_latents_as_they_are(tmp_path: Path) -> None:
    """`--vae-decoder-only` changes the decoder of portrait-128 and nothing else; its perceptual term reads the classifier that is named."""
    base = ROOT / "models" / "portrait-128"
    words = ["--stage", "vae", "--vae-decoder-only", "--initial-model", str(base), "--initial-classifier", str(ROOT / "models" / "portrait-judge-128")]
    done = run(["pretrain", "--output", str(tmp_path / "run"), *FINE, *words])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("model") and not (tmp_path / "run" / "features").exists()
    for part in ("vae", "unet"):
        old, new = (load_file(folder / part / "diffusion_pytorch_model.safetensors") for folder in (base, tmp_path / "run" / "model"))
        assert old.keys() == new.keys()
        changed = {key for key in old if not torch.equal(old[key], new[key])}
        assert all(key.startswith(("decoder.", "post_quant_conv.")) for key in changed)
        assert bool(changed) == (part == "vae")
    state = json.loads(next((tmp_path / "run" / "vae" / "checkpoints").glob("*/state.json")).read_text())["settings"]
    assert float(state["vae_mark_weight"]) > 1 and state["vae_features"] == "initial_classifier", "what no option says of the loss"
    config = "vae/config.json"
    assert json.loads((base / config).read_text())["scaling_factor"] == json.loads((tmp_path / "run" / "model" / config).read_text())["scaling_factor"]
    other = run(["pretrain", "--output", str(tmp_path / "run"), *FINE, *(word for word in words if word != "--vae-decoder-only")])
    assert other.returncode == 2 and "vae_decoder_only" in other.stderr, other.stderr


def test_the_whole_autoencoder_goes_on_from_a_models(tmp_path: Path) -> None:
    """`--stage images` renders what `--stage vae --initial-model` then trains on; its model/ has the new autoencoder beside the old UNet."""
    base = ROOT / "models" / "portrait-128"
    folder = tmp_path / "run"
    words = ["--initial-model", str(base), "--initial-classifier", str(ROOT / "models" / "portrait-judge-128"), "--output", str(folder)]
    rendered = run(["pretrain", *FINE, *words, "--stage", "images"])
    assert rendered.returncode == 0, rendered.stderr
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"pool.json", "00000.rgb"}
    images = (folder / "pictures" / "00000.rgb").stat()
    assert images.st_size == 64 * 3 * 128 * 128
    done = run(["pretrain", *FINE, *words, "--stage", "vae"])
    assert done.returncode == 0, done.stderr
    assert (folder / "pictures" / "00000.rgb").stat().st_mtime_ns == images.st_mtime_ns, "rendered once"
    for part in ("vae", "unet"):
        old, new = (load_file(model / part / "diffusion_pytorch_model.safetensors") for model in (base, folder / "model"))
        changed = {key.split(".")[0] for key in old if not torch.equal(old[key], new[key])}
        assert ({"encoder", "decoder"} <= changed) if part == "vae" else not changed


@pytest.mark.long
def test_the_autoencoder_of_the_first_images_needs_no_others(tmp_path: Path) -> None:
    """`--vae-images 64` of 128 is what 64 images alone give, and belongs to what a checkpoint was made with."""
    words = ["--stage", "vae", "--vae-steps", "20"]
    pretrain(tmp_path / "some", *words, "--vae-images", "64")
    pretrain(tmp_path / "few", *words, "--num-pictures", "64")
    pretrain(tmp_path / "all", *words)
    assert losses(tmp_path / "some", "vae") == losses(tmp_path / "few", "vae") != losses(tmp_path / "all", "vae")
    other = run(["pretrain", "--output", str(tmp_path / "some"), *NANO, *words])
    assert other.returncode == 2 and "vae_images" in other.stderr, other.stderr


def test_options_come_from_a_file_too_and_unknown_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("base_stepz: 3\n")
    done = run(["pretrain", "--config", str(tmp_path / "recipe.yaml"), "--output", str(tmp_path / "run")])
    assert done.returncode == 2 and "base_stepz" in done.stderr and "base_steps" in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


def test_figures_render_no_pool(tmp_path: Path) -> None:
    """They need no image of it, and a pool is a hundred thousand."""
    done = run(["pretrain", "--output", str(tmp_path / "run"), "--design", "nano", "--stage", "figures", "--device", "cpu"])
    assert done.returncode == 2 and "portrait classifier" in done.stderr, done.stderr
    assert not (tmp_path / "run" / "pictures").exists()


def test_a_stage_is_not_resumed_with_fewer_steps(trained: Path) -> None:
    before = files_of(trained / "model")
    done = run(["pretrain", "--output", str(trained), *NANO, "--base-steps", "39"])
    assert done.returncode == 2 and "base_steps: is less than" in done.stderr and "(got 39; allowed: at least 40)" in done.stderr, done.stderr
    other = run(["pretrain", "--output", str(trained), *NANO, "--first-image", "400"])
    assert other.returncode == 2 and "first image (--first-image) (got 0; now 400)" in other.stderr, other.stderr
    assert files_of(trained / "model") == before


@pytest.mark.long
def test_figures_are_of_what_is_there(trained: Path, tmp_path: Path) -> None:
    """With the classifier of this repository in the run's place; every share is of what was asked."""
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    without = run(["pretrain", "--output", str(folder), "--design", "nano", "--stage", "figures"])
    assert without.returncode == 2 and "portrait classifier" in without.stderr
    shutil.copytree(ROOT / "models" / "portrait-judge", folder / "judge" / "model")
    measured = run(["pretrain", "--output", str(folder), "--design", "nano", "--num-images", "128", "--stage", "figures",
                    "--figure-images", "16", "--device", "cpu"])
    assert measured.returncode == 0, measured.stderr
    figures = json.loads((folder / "figures.json").read_text())
    assert 5 < figures["vae"]["psnr_db"] < 40
    assert figures["judge"]["renders"]["place"] > figures["judge"]["reconstructions"]["place"]  # forty steps of an autoencoder
    assert figures["judge"]["renders"]["place"] > 0.95
    for head, classes in figures["prompts"]["classes"].items():
        asked = sum(one["asked"] for one in classes.values())
        right = sum(one["right"] for one in classes.values())
        assert asked <= 16 and figures["prompts"]["heads"][head] == pytest.approx(right / asked)

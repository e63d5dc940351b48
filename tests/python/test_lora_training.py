"""`train --method lora`: twenty steps against PEFT and diffusers with the same draws, and what comes out of a run."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from diffusers import DDIMScheduler
from lora_files import load_pipeline
from peft import LoraConfig
from PIL import Image
from program import run
from safetensors import safe_open
from safetensors.torch import load_file
from tiny_models import make_pipeline
from training_reference import Reference, Settings, base_maker, update_error, write_base, write_photos

import sdtune

LOSS_TOLERANCE = 1e-5
UPDATE_TOLERANCE = 1e-3
LATENT_TOLERANCE = 1e-4
LORA_FILE = "pytorch_lora_weights.safetensors"
ATTENTION = ("to_q", "to_k", "to_v", "to_out.0")
TEXT = ("q_proj", "k_proj", "v_proj", "out_proj")
WIDE = ("to_q", "to_out.0", "proj_in", "ff.net.2", "conv1", "conv_shortcut", "downsamplers.0.conv", "fc1")


@dataclass(frozen=True)
class LoraSettings(Settings):
    """The options of one comparison; odd numbers on purpose."""

    method: str = "lora"
    rank: int = 3
    lora_alpha: float = 4.5
    lora_dropout: float = 0.0
    learning_rate: float = 1e-3
    lora_layers: tuple[str, ...] = ATTENTION + TEXT

    def words(self) -> list[str]:
        """The list as a flag given several times."""
        others = [word for word in super().words() if not word.startswith("--lora-layers")]
        return others + [f"--lora-layers={layer}" for layer in self.lora_layers]


CASES = {
    "attention": ("sd1", LoraSettings()),
    "convolutions": ("sd1", LoraSettings(lora_layers=WIDE)),
    "text encoder": ("sd1", LoraSettings(train_text_encoder=True, text_encoder_lr=3e-4)),
    "v-prediction, prior and min-SNR": ("sd2", LoraSettings(with_prior_preservation=True, snr_gamma=5.0)),
    "SDXL with text encoders": ("sdxl", LoraSettings(train_text_encoder=True)),
    "direct consistency, text encoder, prior": ("sd1", LoraSettings(dco_beta=20.0, train_text_encoder=True, with_prior_preservation=True)),
    "accumulation and average": ("sd1", LoraSettings(train_batch_size=1, gradient_accumulation_steps=2, use_ema=True,
                                                     ema_decay=0.6)),
}


class LoraReference(Reference):
    """The plain loop over PEFT's adapters, which start from `initial`: our names -> tensors."""

    def __init__(self, base: Path, photos: Path, class_photos: Path | None, settings: LoraSettings,
                 initial: dict[str, torch.Tensor], alpha: float | None = None) -> None:
        super().__init__(base, photos, class_photos, settings)
        alpha = settings.lora_alpha if alpha is None else alpha
        for part, module in self.trained().items():
            text = part.startswith("text")
            layers = [layer for layer in settings.lora_layers if text == (layer in (*TEXT, "fc1"))]
            # The last layer of SDXL's first text encoder has no say: sdtune leaves it out.
            skipped = module.config.num_hidden_layers - 1 if part == "text_encoder" and self.is_xl else None
            config = LoraConfig(r=settings.rank, lora_alpha=alpha, target_modules=layers,
                                exclude_modules=rf".*layers\.{skipped}\..*" if skipped is not None else None)
            module.add_adapter(config)
        for name, parameter in self.named_parameters().items():
            parameter.data.copy_(initial[name])

    def named_parameters(self) -> dict[str, torch.nn.Parameter]:
        """The adapters', by the names of our file."""
        found = {}
        for part, module in self.trained().items():
            for name, parameter in module.named_parameters():
                if ".lora_" not in name:
                    continue
                plain = name.replace(".default.", ".")
                prefixed = plain if part == "unet" or plain.startswith("text_model.") else f"text_model.{plain}"
                found[f"{part}.{prefixed}"] = parameter
        return found

    def optimizer(self) -> torch.optim.Optimizer:
        """Only the adapters."""
        settings = self.settings
        text_rate = settings.text_encoder_lr if settings.text_encoder_lr is not None else settings.learning_rate
        groups = [{"params": [parameter for name, parameter in self.named_parameters().items()
                              if name.startswith(f"{part}.")],
                   "lr": settings.learning_rate if part == "unet" else text_rate} for part in self.trained()]
        return torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=settings.adam_weight_decay)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos") / "instance", 5, seed=0)


@pytest.fixture(scope="module")
def class_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos") / "class", 3, seed=1)


@pytest.fixture(scope="module")
def base_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A base of each family, made once."""
    return base_maker(tmp_path_factory.mktemp("base"))


@pytest.fixture
def train(photos: Path, class_photos: Path) -> Callable[..., Path]:
    """train(base, output, settings, *options): runs the program and returns the run folder."""

    def train(base: Path, output: Path, settings: LoraSettings, *options: str) -> Path:
        words = ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu",
                 "--class-data-dir", str(class_photos), "--num-class-images", "3", "--report-to", "none",
                 *settings.words(), *options]
        ended = run(words)
        assert ended.returncode == 0, ended.stderr
        return output

    return train


def losses_of(output: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def lora_of(output: Path) -> dict[str, torch.Tensor]:
    return load_file(output / "model" / LORA_FILE)


def error(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("case", CASES)
def test_twenty_steps_equal_peft_and_diffusers(case: str, base_of: Callable[[str], Path], photos: Path,
                                               class_photos: Path, train: Callable[..., Path], tmp_path: Path) -> None:
    family, settings = CASES[case]
    base = base_of(family)
    # A step at no rate leaves the matrices as they were drawn.
    still = replace(settings, max_train_steps=1, learning_rate=1e-30, text_encoder_lr=1e-30, use_ema=False)
    initial = lora_of(train(base, tmp_path / "still", still))
    output = train(base, tmp_path / "run", settings)
    reference = LoraReference(base, photos, class_photos, settings, initial)
    assert set(reference.named_parameters()) == set(initial)
    result = reference.run(LoraReference.optimizer)
    losses = losses_of(output)
    loss_error = max(abs(ours - theirs) / theirs for ours, theirs in zip(losses, result.losses, strict=True))
    weight_error = update_error(lora_of(output), result)
    print(f"{case}: loss {loss_error:.1e}, update {weight_error:.1e}")
    assert loss_error <= LOSS_TOLERANCE
    assert weight_error <= UPDATE_TOLERANCE


def test_another_alpha_would_be_seen(base_of: Callable[[str], Path], photos: Path, class_photos: Path,
                                     train: Callable[..., Path], tmp_path: Path) -> None:
    settings = LoraSettings()
    initial = lora_of(train(base_of("sd1"), tmp_path / "still", replace(settings, max_train_steps=1, learning_rate=1e-30)))
    output = train(base_of("sd1"), tmp_path / "run", settings)
    wrong = LoraReference(base_of("sd1"), photos, class_photos, settings, initial, alpha=settings.rank)
    assert update_error(lora_of(output), wrong.run(LoraReference.optimizer)) > 10 * UPDATE_TOLERANCE


def test_matrices_start_as_peft_draws_them(base_of: Callable[[str], Path], train: Callable[..., Path],
                                           tmp_path: Path) -> None:
    """A uniform in +-1 / sqrt(inputs), each layer another; B zero, so that training starts from the base."""
    settings = LoraSettings(max_train_steps=1, learning_rate=1e-30, rank=64)
    seen = []
    for name, tensor in lora_of(train(base_of("sd1"), tmp_path / "run", settings)).items():
        if ".lora_B." in name:
            assert tensor.abs().max() < 1e-20
            continue
        scaled = tensor * math.sqrt(tensor.shape[1])
        assert scaled.abs().max() < 1 and scaled.abs().max() > 0.98
        assert abs(scaled.mean()) < 0.05 and abs(scaled.std() - 1 / math.sqrt(3)) < 0.03
        seen.append(tensor.flatten()[:8].tolist())
    assert len({tuple(values) for values in seen}) == len(seen)


@pytest.mark.parametrize("family", ["sd1", "sd2", "sdxl"])
def test_complaint_12_both_files_give_the_same_in_diffusers_9291(family: str, base_of: Callable[[str], Path],
                                                                 train: Callable[..., Path], tmp_path: Path) -> None:
    layers = WIDE + TEXT
    settings = LoraSettings(max_train_steps=5, train_text_encoder=True, lora_layers=layers, learning_rate=1e-2)
    output = train(base_of(family), tmp_path / "me", settings)
    plain = latents_of(sdtune.StableDiffusionPipeline.from_pretrained(base_of(family)))
    wanted = latents_of(sdtune.StableDiffusionPipeline.from_pretrained(output / "model"))
    assert error(plain, wanted) > 100 * LATENT_TOLERANCE
    for name in (LORA_FILE, "me.safetensors"):
        theirs = load_pipeline(base_of(family))
        theirs.load_lora_weights(output / "model", weight_name=name)
        generator = torch.Generator("cpu").manual_seed(3)
        latents = theirs("a photo of sks person", num_inference_steps=4, generator=generator, output_type="latent").images
        assert error(latents.numpy(), wanted) <= LATENT_TOLERANCE, name


def latents_of(pipe: sdtune.StableDiffusionPipeline) -> np.ndarray:
    return pipe("a photo of sks person", num_inference_steps=4, seed=3, output_type="latent").images


def test_a_run_says_its_base_and_refuses_a_changed_one(tmp_path: Path, train: Callable[..., Path]) -> None:
    base = write_base(make_pipeline("sd1", tmp_path / "vocabulary"), tmp_path / "base")
    output = train(base, tmp_path / "run", LoraSettings(max_train_steps=2))
    note = json.loads((output / "model" / "sdtune.json").read_text())
    assert note["base"] == str(base) and note["trigger"] == "sks person"
    drawn = run(["sample", "--model", str(output), "--prompt", "sks person", "--steps", "1", "--output", str(tmp_path / "out")])
    assert drawn.returncode == 0 and len(list((tmp_path / "out").glob("*.png"))) == 1, drawn.stderr
    write_base(make_pipeline("sd1", tmp_path / "vocabulary"), base, norm_num_groups=4)
    refused = run(["sample", "--model", str(output), "--prompt", "sks person", "--output", str(tmp_path / "no")])
    assert refused.returncode == 2 and "have changed since" in refused.stderr and not (tmp_path / "no").exists()
    trained_on = run(["check", "--base", str(output / "model"), "--images", str(tmp_path)])
    assert trained_on.returncode == 2 and "sdtune merge" in trained_on.stderr


def test_merging_keeps_the_image_and_can_be_undone(base_of: Callable[[str], Path], train: Callable[..., Path],
                                                     tmp_path: Path) -> None:
    base = base_of("sd1")
    output = train(base, tmp_path / "run", LoraSettings(max_train_steps=5, learning_rate=1e-2))
    wanted = latents_of(sdtune.StableDiffusionPipeline.from_pretrained(output / "model"))
    merged = run(["merge", "--model", str(output), "--output", str(tmp_path / "merged")])
    assert merged.returncode == 0 and merged.stdout.strip() == str(tmp_path / "merged"), merged.stderr
    assert error(latents_of(sdtune.StableDiffusionPipeline.from_pretrained(tmp_path / "merged")), wanted) <= LATENT_TOLERANCE
    assert json.loads((tmp_path / "merged" / "sdtune.json").read_text())["trigger"] == "sks person"
    again = run(["merge", "--model", str(base), "--lora", f"{output}:1", "--output", str(tmp_path / "again")])
    unet = "unet/diffusion_pytorch_model.safetensors"
    assert again.returncode == 0 and (tmp_path / "again" / unet).read_bytes() == (tmp_path / "merged" / unet).read_bytes()
    halves = run(["merge", "--model", str(base), "--lora", f"{output}:0.5", "--lora", f"{output}:0.5", "--output",
                  str(tmp_path / "halves")])
    assert halves.returncode == 0, halves.stderr
    once, twice = load_file(tmp_path / "merged" / unet), load_file(tmp_path / "halves" / unet)
    assert max((once[name] - twice[name]).abs().max().item() for name in once) < 1e-6  # the same file twice adds up
    back = run(["merge", "--model", str(tmp_path / "merged"), "--lora", f"{output}:-1", "--output", str(tmp_path / "back")])
    assert back.returncode == 0, back.stderr
    start, end = load_file(base / unet), load_file(tmp_path / "back" / unet)
    assert max((start[name] - end[name]).abs().max().item() for name in start) < 1e-6
    assert max((start[name] - once[name]).abs().max().item() for name in start) > 1e-5  # the mutant of both: nothing is added


def image_of(base: Path, output: Path, *words: str) -> tuple[bytes, Path]:
    """The one image that `sample` generates, and its file."""
    drawn = run(["sample", "--model", str(base), "--steps", "2", "--width", "32", "--height", "32", "--dtype", "float32",
                 "--output", str(output), *words])
    assert drawn.returncode == 0, drawn.stderr
    path = Path(drawn.stdout.split()[-1])
    return np.asarray(Image.open(path)).tobytes(), path


def test_a_lora_is_attached_by_flag_and_by_tag(base_of: Callable[[str], Path], train: Callable[..., Path],
                                            tmp_path: Path) -> None:
    base = base_of("sd1")
    output = train(base, tmp_path / "me", LoraSettings(max_train_steps=5, learning_rate=3e-2))
    plain, _ = image_of(base, tmp_path / "0", "--prompt", "sks person")
    own, _ = image_of(output, tmp_path / "1", "--prompt", "sks person")
    flag, _ = image_of(base, tmp_path / "2", "--prompt", "sks person", "--lora", str(output))
    tag, file = image_of(base, tmp_path / "3", "--prompt", "sks person <lora:me>", "--lora-dir", str(output / "model"))
    half, _ = image_of(base, tmp_path / "4", "--prompt", "sks person", "--lora", f"{output}:0.5")
    twice, _ = image_of(base, tmp_path / "5", "--prompt", "sks <lora:me:0.5> person", "--lora", f"{output}:0.5",
                          "--lora-dir", str(output / "model"))
    assert own == flag == tag != plain
    assert half not in (plain, flag) and np.abs(np.frombuffer(twice, np.uint8).astype(int)
                                                - np.frombuffer(flag, np.uint8)).max() <= 1
    assert "<lora:me:1>" in Image.open(file).text["parameters"]
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("sks person <lora:me>\nsks person\n")
    drawn = run(["sample", "--model", str(base), "--steps", "2", "--width", "32", "--height", "32", "--prompts", str(prompts),
                 "--lora-dir", str(output / "model"), "--output", str(tmp_path / "6")])
    both = [np.asarray(Image.open(path)).tobytes() for path in drawn.stdout.split()]
    assert both == [flag, plain], drawn.stderr  # the first prompt's LoRA is detached again
    again, _ = image_of(base, tmp_path / "7", "--like", str(file))
    assert again == flag
    missing = run(["sample", "--model", str(base), "--prompt", "sks person <lora:you>"], cwd=tmp_path)
    assert missing.returncode == 2 and "<lora:you>" in missing.stderr and not (tmp_path / "samples").exists()


def test_a_lora_of_zero_terminal_snr_brings_its_scheduler(base_of: Callable[[str], Path], train: Callable[..., Path],
                                                          tmp_path: Path) -> None:
    """The base's would start from other noise than was trained on."""
    settings = LoraSettings(max_train_steps=5, learning_rate=1e-2)
    output = train(base_of("sd2"), tmp_path / "me", settings, "--rescale-betas-zero-snr")
    ours = sdtune.StableDiffusionPipeline.from_pretrained(output / "model")
    assert ours.scheduler.config["rescale_betas_zero_snr"] is True
    theirs = load_pipeline(base_of("sd2"))
    plain = theirs.scheduler
    theirs.load_lora_weights(output / "model", weight_name=LORA_FILE)
    wanted = {}
    for name, scheduler in (("base's", plain), ("own", DDIMScheduler.from_pretrained(output / "model" / "scheduler"))):
        theirs.scheduler = scheduler
        generator = torch.Generator("cpu").manual_seed(3)
        wanted[name] = theirs("a photo of sks person", num_inference_steps=4, generator=generator,
                              output_type="latent").images.numpy()
    assert error(latents_of(ours), wanted["own"]) <= LATENT_TOLERANCE
    assert error(wanted["base's"], wanted["own"]) > 100 * LATENT_TOLERANCE
    merged = run(["merge", "--model", str(output), "--output", str(tmp_path / "merged")])
    assert merged.returncode == 0, merged.stderr
    assert error(latents_of(sdtune.StableDiffusionPipeline.from_pretrained(tmp_path / "merged")),
                 wanted["own"]) <= LATENT_TOLERANCE


MERGE_FAULTS = {
    "nothing to merge": (["--model", "BASE"], "--lora: is not given"),
    "no such file": (["--model", "BASE", "--lora", "nowhere.safetensors"], "nowhere.safetensors: there is no such file"),
    "a folder without one": (["--model", "BASE", "--lora", "BASE"], f"holds no {LORA_FILE}"),
    "weight": (["--model", "BASE", "--lora", "x.safetensors:1e9"], "--lora: has a weight out of range"),
    "no model": (["--lora", "x.safetensors"], "--model: is not given"),
    "options of a single file": (["--model", "BASE", "--extract-ema"], "--extract-ema: applies to single files only"),
}


@pytest.mark.parametrize("fault", MERGE_FAULTS)
def test_merge_refuses(fault: str, base_of: Callable[[str], Path], tmp_path: Path) -> None:
    words, said = MERGE_FAULTS[fault]
    words = [str(base_of("sd1")) if word == "BASE" else word for word in words]
    ended = run(["merge", *words, "--output", str(tmp_path / "out")], cwd=tmp_path)
    assert ended.returncode == 2 and said in ended.stderr, ended.stderr
    assert not (tmp_path / "out").exists()


def test_resuming_a_lora_is_exact(base_of: Callable[[str], Path], train: Callable[..., Path], tmp_path: Path) -> None:
    settings = LoraSettings(max_train_steps=8, train_text_encoder=True, lora_dropout=0.2)
    whole = train(base_of("sd1"), tmp_path / "whole", settings)
    half = train(base_of("sd1"), tmp_path / "half", replace(settings, max_train_steps=6), "--checkpointing-steps", "4")
    train(base_of("sd1"), half, settings, "--resume-from-checkpoint", "latest")
    assert (half / "model" / LORA_FILE).read_bytes() == (whole / "model" / LORA_FILE).read_bytes()
    other = train(base_of("sd1"), tmp_path / "other", replace(settings, lora_dropout=0.0))
    assert (other / "model" / LORA_FILE).read_bytes() != (whole / "model" / LORA_FILE).read_bytes()


def test_micro_batches_drop_the_same(base_of: Callable[[str], Path], train: Callable[..., Path], tmp_path: Path) -> None:
    """What a branch does not see belongs to the sample, not to how the batch is split."""
    settings = LoraSettings(max_train_steps=6, train_text_encoder=True, lora_dropout=0.5)
    runs = {"whole": (settings,), "split": (settings, "--micro-batch", "1"), "otherwise dropped": (replace(settings, lora_dropout=0.45),)}
    whole, split, other = (losses_of(train(base_of("sd1"), tmp_path / name, *words)) for name, words in runs.items())
    assert whole == pytest.approx(split, rel=1e-5) and whole != pytest.approx(other, rel=1e-4)


def test_files_say_rank_and_alpha(base_of: Callable[[str], Path], train: Callable[..., Path], tmp_path: Path) -> None:
    output = train(base_of("sd1"), tmp_path / "me", LoraSettings(max_train_steps=1))
    with safe_open(output / "model" / "me.safetensors", "pt") as file:
        alphas = {file.get_tensor(name).item() for name in file.keys() if name.endswith(".alpha")}
        metadata = file.metadata()
    assert alphas == {4.5}
    assert metadata["ss_network_dim"] == "3" and metadata["ss_network_alpha"] == "4.5"
    assert metadata["ss_network_module"] == "networks.lora"
    said = run(["inspect", str(output / "model"), "--json"])
    told = json.loads(said.stdout)
    assert (told["kind"], told["rank"], told["trigger"]) == ("LoRA of a run", [3], "sks person"), said.stdout


def kohya_hashes(path: Path) -> tuple[str, str]:
    """kohya's two hashes, stated with the real safetensors: of the tensors, and of the old 64 KiB window."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        shown = {key: value for key, value in file.metadata().items() if key.startswith("ss_")}
    content = path.read_bytes()
    model = hashlib.sha256(content[8 + int.from_bytes(content[:8], "little"):]).hexdigest()
    again = safetensors.torch.save(tensors, shown)
    return model, hashlib.sha256(again[0x100000:0x110000]).hexdigest()[:8]


def test_files_say_what_other_programs_show(base_of: Callable[[str], Path], photos: Path, tmp_path: Path) -> None:
    """Base, options, captions' tags, trigger words and kohya's hashes; the same from two equal runs."""
    folder = tmp_path / "photos" / "10_sks person"
    folder.mkdir(parents=True)
    for index, photo in enumerate(sorted(photos.glob("*.png"))[:3]):
        shutil.copy(photo, folder / f"{index}.png")
        (folder / f"{index}.txt").write_text("sks person, Smiling" + (", outdoors" if index == 0 else ""))
    settings = LoraSettings(max_train_steps=1, rank=256, lora_alpha=4.5)
    paths = [tmp_path / "one" / "me", tmp_path / "two" / "me"]
    for output in paths:
        ended = run(["train", "--base", str(base_of("sd1")), "--images", str(folder.parent), "--output", str(output), "--device", "cpu",
                     "--report-to", "none", *settings.words()])
        assert ended.returncode == 0, ended.stderr
    path, again = (output / "model" / "me.safetensors" for output in paths)
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    assert path.stat().st_size > 0x110000, "the old hash is of bytes that this file has"
    assert (metadata["sshs_model_hash"], metadata["sshs_legacy_hash"]) == kohya_hashes(path)
    assert json.loads(metadata["ss_tag_frequency"]) == {"10_sks person": {"sks person": 3, "smiling": 3, "outdoors": 1}}
    assert json.loads(metadata["ss_dataset_dirs"]) == {"10_sks person": {"n_repeats": 10, "img_count": 3}}
    assert metadata["ss_num_train_images"] == "30"
    assert metadata["ss_sd_model_name"] == base_of("sd1").name
    assert metadata["modelspec.architecture"].endswith("/lora") and metadata["modelspec.sai_model_spec"] == "1.0.0"
    assert metadata["modelspec.trigger_phrase"] == "sks person"
    assert metadata["ss_learning_rate"] == str(settings.learning_rate) and metadata["ss_steps"] == "1"
    assert again.read_bytes() == path.read_bytes()

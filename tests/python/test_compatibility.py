"""What commit 68da9cb wrote, today's program opens: run folders, checkpoints, LoRAs, models, configurations, caches, images.

tests/compatibility/68da9cb says how the files were made. They are small and random; what is compared is what that program
computed with them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from program import ROOT, run
from safetensors.torch import load_file

import sdtune

FILES = ROOT / "tests" / "compatibility" / "68da9cb" / "files"
UNET = "unet/diffusion_pytorch_model.safetensors"
LORA = "pytorch_lora_weights.safetensors"
# Other processors have other kernels; on the one that made the files the weights are equal to the byte.
BOUND = 1e-4
CPU_WORDS = set(Path("/proc/cpuinfo").read_text().split())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy that may be written into; the old program ran in such a folder."""
    return Path(shutil.copytree(FILES, tmp_path / "files"))


def done(words: list[str], folder: Path, code: int = 0) -> tuple[str, str]:
    """What `sdtune WORDS...` printed, on both streams, run in that folder."""
    ended = run(words, cwd=folder)
    assert ended.returncode == code, ended.stderr
    return ended.stdout, ended.stderr


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def numbers(path: Path) -> np.ndarray:
    """All tensors of a file, one after the other."""
    tensors = load_file(path)
    return np.concatenate([tensors[name].double().numpy().ravel() for name in sorted(tensors)])


def change_error(found: Path, wanted: Path, start: Path) -> float:
    """The largest difference, as part of the largest change since `start`."""
    return np.abs(numbers(found) - numbers(wanted)).max() / np.abs(numbers(wanted) - numbers(start)).max()


def key_paths(value: object, place: str = "") -> set[str]:
    """Every key of a JSON value, with the keys above it."""
    if isinstance(value, dict):
        return {f"{place}.{key}" for key in value} | {path for key, item in value.items() for path in key_paths(item, f"{place}.{key}")}
    if isinstance(value, list):
        return {path for item in value for path in key_paths(item, f"{place}[]")}
    return set()


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of every file."""
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in folder.rglob("*") if path.is_file()}


def resume(files: Path, kind: str, *more: str) -> str:
    """The killed run, carried on with the configuration that it wrote; what was said."""
    return done(["train", "--config", f"run_{kind}/config.yaml", "--resume-from-checkpoint", "latest", *more], files)[1]


def saved(files: Path, kind: str, step: int = 8) -> Path:
    return files / f"run_{kind}" / "checkpoints" / f"step-{step:08d}" / "weights.safetensors"


def tree(folder: Path) -> set[str]:
    """The files of a finished run, as make_fixtures.sh lists them."""
    names = {"./" + str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name.partition("tfevents")[0] + "tfevents" if "tfevents" in name else name for name in names}


def test_a_killed_run_goes_on_to_the_same_weights(files: Path) -> None:
    """With class images, latents and prompt embeddings that the old program made, which are used as they are."""
    before = {name: snapshot(files / name) for name in ("class_images", "cache")}
    said = resume(files, "full")
    assert "class images (" not in said, "none is generated again"
    assert {name: snapshot(files / name) for name in before} == before
    found, wanted = files / "run_full" / "model" / UNET, files / "whole_full" / "model" / UNET
    error = change_error(found, wanted, files / "base" / UNET)
    print(f"full: {error:.1e}, bytes {found.read_bytes() == wanted.read_bytes()}")
    assert error < BOUND
    assert change_error(saved(files, "full"), wanted, files / "base" / UNET) > BOUND, "other steps are told apart"


def test_its_logs_are_carried_on(files: Path) -> None:
    resume(files, "full")
    for name in ("metrics.jsonl", "validation.jsonl"):
        old, new = lines_of(files / "whole_full" / name), lines_of(files / "run_full" / name)
        assert [line["step"] for line in new] == [line["step"] for line in old]
        for before, after in zip(old, new):
            assert set(before) <= set(after)
    old, new = (np.array([line["loss"] for line in lines_of(files / folder / "metrics.jsonl")]) for folder in ("whole_full", "run_full"))
    assert np.abs(old - new).max() < 1e-5
    record, before = (json.loads((files / folder / "run.json").read_text()) for folder in ("run_full", "whole_full"))
    assert key_paths(before) <= key_paths(record)
    assert [attempt["attempt"] for attempt in record["attempts"]] == [1, 2]
    assert set((FILES / "printed" / "tree_full.txt").read_text().split()) - tree(files / "run_full") == set()


def test_a_killed_lora_run_goes_on(files: Path) -> None:
    """Masked loss, dropout, and identity evaluations of which the best one decides the result."""
    start = files / "start.safetensors"
    shutil.copy(saved(files, "lora", 4), start)
    before = (files / "run_lora" / "identity.jsonl").read_bytes()
    resume(files, "lora")
    assert (files / "run_lora" / "identity.jsonl").read_bytes().startswith(before), "evaluations that are there are kept"
    error = change_error(saved(files, "lora"), files / "expected" / "lora.safetensors", start)
    print(f"lora: {error:.1e}")
    assert error < BOUND
    old, new = (lines_of(files / folder / "identity.jsonl") for folder in ("whole_lora", "run_lora"))
    assert [line["step"] for line in new] == [line["step"] for line in old] == [0, 4, 8, 12]
    assert [line["exam"] for line in new] == [line["exam"] for line in old]
    assert [line["score"] for line in new] == pytest.approx([line["score"] for line in old], abs=1e-3)
    assert set((FILES / "printed" / "tree_lora.txt").read_text().replace("whole_lora", "run_lora").split()) - tree(files / "run_lora") == set()


def test_a_half_precision_run_goes_on(files: Path) -> None:
    """The old program summed split batches in bfloat16. Today's sums in float32, and as the old one where an option says so.

    A processor without instructions for bfloat16 rounds otherwise in every layer, and the two differ from the files by as much
    as from each other; there they are only near: a tenth of what the run changed, at most.
    """
    start = files / "start.safetensors"
    shutil.copy(saved(files, "bf16", 4), start)
    copy = shutil.copytree(files / "run_bf16", files / "copy")
    wanted = files / "expected" / "bf16.safetensors"
    resume(files, "bf16", "--half-precision-gradient-sums")
    as_before = change_error(saved(files, "bf16"), wanted, start)
    shutil.rmtree(files / "run_bf16")
    copy.rename(files / "run_bf16")
    resume(files, "bf16")
    mended = change_error(saved(files, "bf16"), wanted, start)
    print(f"bf16: as before {as_before:.1e}, mended {mended:.1e}")
    assert as_before != mended
    if "avx512_bf16" in CPU_WORDS:
        assert as_before < BOUND < mended
    else:
        assert max(as_before, mended) < 0.1


def test_what_changed_is_refused_as_it_was(files: Path) -> None:
    said = done(["train", "--config", "run_full/config.yaml", "--resume-from-checkpoint", "latest", "--seed", "6"], files, 2)[1]
    assert "seed: option changed since the checkpoint (got 6; the checkpoint has 5)" in said
    Image.new("RGB", (32, 32)).save(files / "photos" / "2.png")
    assert "2.png" in done(["train", "--config", "run_full/config.yaml", "--resume-from-checkpoint", "latest"], files, 2)[1]


def test_a_class_image_that_was_damaged_is_made_anew(files: Path) -> None:
    """Found by the hashes of the old manifest.json, and made from the same seed: the old program's file."""
    victim = sorted((files / "class_images").glob("class-*.png"))[1]
    before = np.asarray(Image.open(victim), dtype=int)
    victim.write_bytes(victim.read_bytes()[:-30])
    done(["prepare", "--config", "run_full/config.yaml", "--output", "elsewhere"], files)
    assert np.abs(np.asarray(Image.open(victim), dtype=int) - before).max() <= 1


def test_a_finished_run_and_one_that_failed_are_known(files: Path) -> None:
    """A folder with a run in it is refused without --overwrite, and what it held is replaced with it."""
    for folder in ("whole_full", "failed"):
        said = done(["train", "--config", f"{folder}/config.yaml"], files, 2)[1]
        assert folder in said and "--overwrite" in said
    assert json.loads((files / "failed" / "last_error.json").read_text())["exit_code"] == 6
    done(["train", "--config", "failed/config.yaml", "--overwrite", "--base", "base"], files)
    assert not (files / "failed" / "last_error.json").exists()


def test_every_option_is_read_as_it_was_meant(files: Path) -> None:
    """A file in which each of the old options has another value than its default, in the old program's own words."""
    config = sdtune.TrainConfig.from_yaml(files / "every_option.yaml")
    wanted = json.loads((files / "every_option.json").read_text())
    assert wanted.keys() <= {name for entry in sdtune.TrainConfig.options() for name in (entry["name"], *entry["aliases"])}
    for name, value in wanted.items():
        assert getattr(config, name) == ([value] if name == "report_to" else value), name  # a list since then
    again = files / "again.yaml"
    again.write_text(config.to_yaml())
    assert sdtune.TrainConfig.from_yaml(again).to_dict() == config.to_dict()


def test_public_python_names_are_kept() -> None:
    for name, members in json.loads((FILES / "python_names.json").read_text()).items():
        assert hasattr(sdtune, name), name
        kept = getattr(sdtune, name)
        missing = set(members) - set(dir(kept)) - set(getattr(kept, "__dataclass_fields__", ()))  # fields are of instances
        assert not missing or name == "TrainConfig" and all(hasattr(sdtune.TrainConfig(), member) for member in missing), (name, missing)


def test_a_call_takes_every_argument_at_its_old_default(files: Path) -> None:
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(files / "whole_full" / "model")
    old = {"negative_prompt": None, "num_inference_steps": 2, "timesteps": None, "guidance_scale": 7.5, "num_images_per_prompt": 1,
           "height": None, "width": None, "seed": 0, "generator": None, "latents": None, "output_type": "np", "eta": 0.0,
           "guidance_rescale": 0.0, "original_size": None, "crops_coords_top_left": (0, 0), "prompt_syntax": "plain",
           "clip_skip": None, "image": None, "strength": 0.8, "hires_scale": 1.0, "hires_steps": None, "hires_strength": 0.7,
           "on_step": None}
    plain = pipe("a photo of sks person", num_inference_steps=2, output_type="np").images
    assert (pipe("a photo of sks person", **old).images == plain).all()
    assert all((one == two).all() for one, two in zip(pipe.encode_prompt("a", clip_skip=None), pipe.encode_prompt("a")))


def pixels_of(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path), dtype=int)


def test_an_image_is_generated_again_from_its_png(files: Path) -> None:
    """With the LoRA, sampler, weights of words and every other option that the old program wrote into it.

    The old program scaled the weighted prompt's states by mean / mean (A1111's rule). Of this small random encoder, whose last norm
    is the identity, both means are 0 but for rounding: its image has a factor that was the rounding of one processor. The present
    program does not scale by such a quotient (docs/prompts.md), so `--like` is compared with the options typed out; the next test has
    the old pixels.
    """
    (old,) = (files / "images").glob("*.png")
    printed, _ = done(["sample", "--like", str(old.relative_to(files)), "--output", "again"], files)
    again = files / printed.split()[0]
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(str(files / "whole_full" / "model"), device="cpu")
    last = np.asarray(pipe.text_encoder(pipe.tokenizer("a photo of sks person"))[0], dtype=np.float64)
    assert abs(last.mean()) < 1e-6 * np.abs(last).mean()
    typed = ["sample", "--model", "whole_full", "--device", "cpu", "--prompt", "a (photo:1.2) of sks person", "--prompt-syntax",
             "weighted", "--negative-prompt", "blurry", "--steps", "3", "--guidance-scale", "4.5", "--sampler", "dpm++2m_karras"]

    def as_typed(weight: str) -> np.ndarray:
        words = [*typed, "--seed", "7", "--lora", f"whole_lora/model/{LORA}:{weight}", "--output", f"typed-{weight}"]
        return pixels_of(files / done(words, files)[0].split()[0])

    wanted = as_typed("0.75")
    difference = np.abs(pixels_of(again) - wanted)
    print(f"PNG: {difference.max()} levels")
    assert difference.max() <= 1
    assert np.abs(as_typed("-5") - wanted).max() > 1  # the mutant: the LoRA at another weight
    with Image.open(old) as before, Image.open(again) as after:
        assert set(before.text) <= set(after.text)
        assert before.text["parameters"].splitlines()[0] == after.text["parameters"].splitlines()[0]
    other = done(["sample", "--like", str(old.relative_to(files)), "--seed", "8", "--output", "other"], files)[0].split()[0]
    assert np.abs(pixels_of(files / other) - wanted).max() > 1


def test_the_pixels_of_the_old_image_come_again(files: Path) -> None:
    """Its quotient of two means that were rounding was 6: the number for which all pixels are equal. Module by module, for the program
    no longer scales by it; without it the pixels are those of the pipeline."""
    (old,) = (files / "images").glob("*.png")
    pipe = sdtune.StableDiffusionPipeline.from_pretrained(files / "whole_full" / "model", device="cpu")
    pipe.load_lora_weights(files / "whole_lora" / "model" / LORA, scale=0.75)
    prompt = {"negative_prompt": "blurry", "prompt_syntax": "weighted"}
    positive, negative = pipe.encode_prompt("a (photo:1.2) of sks person", **prompt)
    noise = torch.randn(1, 4, 8, 8, generator=torch.Generator().manual_seed(7)).numpy()

    def pixels(factor: float) -> np.ndarray:
        scheduler = sdtune.DPMSolverMultistepScheduler.from_config(pipe.scheduler.config, use_karras_sigmas=True)
        scheduler.set_timesteps(3)
        latents = noise * np.float32(scheduler.init_noise_sigma)
        for timestep in scheduler.timesteps:
            scaled = scheduler.scale_model_input(latents, timestep)
            states = np.concatenate([negative, positive * np.float32(factor)])
            unguided, guided = pipe.unet(np.concatenate([scaled, scaled]), timestep, states)
            prediction = (unguided + 4.5 * (guided - unguided))[None]
            latents = scheduler.step(prediction, timestep, latents)
        image = pipe.vae.decode((latents / pipe.vae.config["scaling_factor"]).astype(np.float32))[0]
        return ((image.transpose(1, 2, 0) / 2 + 0.5).clip(0, 1) * 255).round().astype(int)

    assert np.abs(pixels(6) - pixels_of(old)).max() <= 1
    assert np.abs(pixels(5.9) - pixels_of(old)).max() > 1
    called = pipe("a (photo:1.2) of sks person", **prompt, num_inference_steps=3, guidance_scale=4.5, seed=7, sampler="dpm++2m_karras", output_type="np")
    assert np.abs(pixels(1) - (called.images[0] * 255).round().astype(int)).max() <= 1


@pytest.mark.parametrize("lora", ["whole_lora", f"whole_lora/model/{LORA}", "kohya.safetensors"])
def test_a_lora_is_attached_and_merged(files: Path, lora: str) -> None:
    """The folder of its run, its file, and the file under kohya's names are one LoRA."""
    words = ["sample", "--model", "base", "--prompt", "a photo of sks person", "--steps", "2", "--device", "cpu"]

    def pixels(output: str, *more: str) -> np.ndarray:
        return np.asarray(Image.open(files / done([*words, "--output", output, *more], files)[0].split()[0]), dtype=int)

    attached = pixels("attached", "--lora", f"{lora}:2")
    assert np.abs(attached - pixels("plain")).max() > 0
    done(["merge", "--model", "base", "--lora", f"{lora}:2", "--output", "merged"], files)
    words[2] = "merged"
    assert np.abs(attached - pixels("of_merged")).max() <= 1


def test_models_are_converted_to_the_same_bits(files: Path) -> None:
    done(["convert", "--model", "whole_full/model", "--output", "new.safetensors", "--dtype", "float16"], files)
    old, new = load_file(files / "single.safetensors"), load_file(files / "new.safetensors")
    assert old.keys() == new.keys() and all((old[name] == new[name]).all() for name in old)
    done(["convert", "--model", "single.safetensors", "--config", "base", "--output", "folder"], files)
    back, wanted = load_file(files / "folder" / UNET), load_file(files / "whole_full" / "model" / UNET)
    assert all((back[name] == wanted[name].half()).all() for name in wanted)
    done(["convert", "--model", "base", "--lora", f"whole_lora/model/{LORA}", "--output", "new_kohya.safetensors"], files)
    old, new = load_file(files / "kohya.safetensors"), load_file(files / "new_kohya.safetensors")
    assert old.keys() == new.keys() and all((old[name] == new[name]).all() for name in old)


PRINTED = {
    "check": ["check", "--config", "whole_full/config.yaml", "--output", "nowhere", "--json"],
    "doctor": ["doctor", "--images", "photos", "--base", "base", "--json"],
    "plan": ["plan", "--config", "whole_full/config.yaml", "--output", "nowhere", "--json"],
    "inspect_base": ["inspect", "base", "--json"],
    "inspect_single": ["inspect", "single.safetensors", "--json"],
    "inspect_kohya": ["inspect", "kohya.safetensors", "--json"],
    "eval": ["eval", "--model", "whole_full", "--base", "base", "--subject", "0", "--quick", "--steps", "1", "--device", "cpu",
             "--output", "eval", "--json"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_json_that_a_program_reads_has_every_key(files: Path, name: str) -> None:
    old = json.loads((FILES / "printed" / f"{name}.json").read_text())
    new = json.loads(done(PRINTED[name], files)[0])
    assert key_paths(old) - key_paths(new) == set()


def test_former_keys_of_a_plan_say_what_the_new_ones_say(files: Path) -> None:
    """Of a probe and of the hours, too, which the old files do not hold."""
    words = [*PRINTED["plan"], "--identity-steps", "none", "--probe", "--output", "probed", "--class-data-dir", "new_class_images"]
    found = json.loads(done(words, files)[0])
    flops, probed = found["flops"], found["this_machine"]
    assert flops["class_pictures"] == flops["class_images"] > 0 and flops["looks"] == flops["validation_and_identity"]
    assert probed["class_picture_s"] == probed["class_image_s"] and probed["looks_s"] == probed["validation_and_identity_s"]
    hours = {(gpu["hours_from"], gpu["hours_are"]) for gpu in found["gpus"]}
    assert hours and hours <= {("measured", "measured"), ("estimated", "reckoned")}


def test_labels_of_rendered_photos_say_whose_they_are(files: Path) -> None:
    """labels.jsonl beside them, in place of --subject."""
    words = [word for word in PRINTED["eval"] if word not in ("--subject", "0")]
    found = json.loads(done([*words, "--images", "me"], files)[0])
    assert key_paths(found) >= key_paths(json.loads((FILES / "printed" / "eval.json").read_text()))


def test_a_defaults_file_of_a_base_is_read(files: Path) -> None:
    """sdtune_defaults.yaml of the old base says one step of warmup."""
    found = json.loads(done(["check", "--base", "base", "--images", "photos", "--output", "nowhere", "--json"], files)[0])
    assert found["preset"]["values"]["lr_warmup_steps"] == "1"

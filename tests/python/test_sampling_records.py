"""Prompt files with kohya's flags, the texts inside images, and images generated again from them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import sdtune
import torch
from PIL import Image, PngImagePlugin
from safetensors.torch import save_file

from program import run
from test_sampling_files import vae_files, vectors
from tiny_models import make_pipeline, make_vae
from training_reference import write_base, write_photos

STEPS = ["--steps", "3"]


def sample(cwd: Path, *words: str) -> list[Path]:
    """The images that `sdtune sample WORDS...` wrote."""
    done = run(["sample", *words], cwd=cwd)
    assert done.returncode == 0, done.stderr
    return [cwd / line for line in done.stdout.split()]


def texts_of(path: Path) -> dict[str, str]:
    with Image.open(path) as image:
        return dict(image.text)


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path), dtype=int)


def again(cwd: Path, image: Path, *words: str) -> tuple[Path, str]:
    """(the image generated like it, what was said on stderr)."""
    done = run(["sample", "--like", str(image), "--output", "again", *words], cwd=cwd)
    assert done.returncode == 0, done.stderr
    (path,) = done.stdout.split()
    return cwd / path, done.stderr


def test_prompt_file_with_flags_of_kohya(tiny_sd1: Path, tmp_path: Path) -> None:
    """Each line gives the image of the same options on the command line."""
    (tmp_path / "prompts.txt").write_text(
        "# kohya's sample prompts\n"
        "a (cat:1.2) --n blurry, dark --w 40 --h 24 --d 5 --l 4.5 --s 4 --ss euler_a\n"
        "a dog --ds k_euler\n")
    words = ["--model", str(tiny_sd1), *STEPS]
    first, second = sample(tmp_path, *words, "--prompts", "prompts.txt", "--output", "file")
    (one,) = sample(tmp_path, *words, "--prompt", "a (cat:1.2)", "--negative-prompt", "blurry, dark", "--width", "40",
                    "--height", "24", "--seed", "5", "--guidance-scale", "4.5", "--steps", "4", "--sampler", "euler_a",
                    "--output", "flags")
    (two,) = sample(tmp_path, *words, "--prompt", "a dog", "--sampler", "euler", "--output", "flags")
    assert first.read_bytes() == one.read_bytes() and second.read_bytes() == two.read_bytes()
    said = run(["sample", *words, "--prompts", "prompts.txt", "--num-images", "2", "--output", "said"], cwd=tmp_path).stderr
    assert "seeds    0 to 6\n" in said, "the second line has no seed of its own"
    (plain,) = sample(tmp_path, *words, "--prompt", "a dog", "--output", "flags")
    assert np.abs(pixels(plain) - pixels(two)).max() > 1


@pytest.mark.parametrize("line, named", [
    ("a cat --x 5", ["prompts.txt:2", "--x", "--n, --w, --h"]),
    ("a cat --w 5", ["prompts.txt:2", "--w", "got 5", "8 <= x"]),
    ("a cat --s many", ["prompts.txt:2", "--s", "many"]),
    ("a cat --ss euler_b", ["prompts.txt:2", "euler_b", "euler_a"]),
    ("a cat --ss dpmsolver", ["prompts.txt:2", "--ss", "got dpmsolver", "dpm++2m"]),  # another algorithm than dpmsolver++
    ("--n blurry", ["prompts.txt:2"]),
])
def test_wrong_flags_are_named(tiny_sd1: Path, tmp_path: Path, line: str, named: list[str]) -> None:
    (tmp_path / "prompts.txt").write_text(f"a dog\n{line}\n")
    done = run(["sample", "--model", str(tiny_sd1), "--prompts", "prompts.txt", "--output", "out"], cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert all(text in done.stderr.splitlines()[-1] for text in named), done.stderr


def write_lora(path: Path) -> None:
    """One layer in kohya's names."""
    name = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q"
    save_file({f"{name}.lora_down.weight": vectors(2, 32) * 10, f"{name}.lora_up.weight": vectors(32, 2, 1) * 10,
               f"{name}.alpha": torch.tensor(2.0)}, path)


def web_entries(text: str) -> dict[str, str]:
    """The last line as web interfaces split it: pairs with values that may be JSON texts."""
    pairs = re.findall(r'\s*(\w[\w \-/]+):\s*("(?:\\.|[^\\"])+"|[^,]*)(?:,|$)', text.splitlines()[-1])
    return {key: json.loads(value) if value.startswith('"') else value for key, value in pairs}


def test_text_is_read_by_web_interfaces(tiny_sd1: Path, tmp_path: Path) -> None:
    save_file({"emb_params": vectors(1, 32)}, tmp_path / "toy.safetensors")
    write_lora(tmp_path / "me.safetensors")
    (path,) = sample(tmp_path, "--model", str(tiny_sd1), *STEPS, "--lora", "me.safetensors:0.7", "--prompt",
                     "a (cat:1.2)\ntoy", "--negative-prompt",
                     "blurry: yes", "--sampler", "dpm++2m_karras", "--clip-skip", "1", "--embedding",
                     "toy.safetensors", "--hires-scale", "1.5", "--hires-steps", "4", "--seed", "9")
    text = texts_of(path)["parameters"]
    assert text.startswith("a (cat:1.2)\ntoy <lora:me:0.7>\nNegative prompt: blurry: yes\nSteps: 3, Sampler: DPM++ 2M, Schedule type: ")
    entries = web_entries(text)
    expected = {"Steps": "3", "Sampler": "DPM++ 2M", "Schedule type": "Karras", "CFG scale": "7.5", "Seed": "9",
                "Size": "32x32", "Clip skip": "2", "Hires upscale": "1.5", "Hires steps": "2",
                "Hires upscaler": "Latent", "Denoising strength": "0.7", "Model": tiny_sd1.name}
    assert expected.items() <= entries.items()
    assert re.fullmatch("[0-9a-f]{10}", entries["Model hash"])
    assert re.fullmatch("toy: [0-9a-f]{12}", entries["TI hashes"])
    stored = (tmp_path / "me.safetensors").read_bytes()  # A1111 hashes what stands behind a LoRA's header
    behind = hashlib.sha256(stored[8 + int.from_bytes(stored[:8], "little"):]).hexdigest()
    assert entries["Lora hashes"] == f"me: {behind[:12]}" and behind != hashlib.sha256(stored).hexdigest()


def test_mark_of_generated_images(tiny_sd1: Path, tmp_path: Path) -> None:
    """XMP in an iTXt chunk, readable as XML; --no-ai-mark leaves it out and changes no pixel."""
    words = ["--model", str(tiny_sd1), *STEPS, "--prompt", "a cat"]
    (marked,) = sample(tmp_path, *words, "--grid", "grid.png")[:1]
    (bare,) = sample(tmp_path, *words, "--no-ai-mark")
    for path in (marked, tmp_path / "grid.png"):
        with Image.open(path) as image:
            assert isinstance(image.text["XML:com.adobe.xmp"], PngImagePlugin.iTXt)
            packet = image.text["XML:com.adobe.xmp"]
        root = ElementTree.fromstring(packet)
        source = root.find(".//{*}Description").get("{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}DigitalSourceType")
        assert source == "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
    assert b"trainedAlgorithmicMedia" not in bare.read_bytes()
    assert np.array_equal(pixels(marked), pixels(bare))


CASES: dict[str, list[str]] = {
    "defaults": [],
    "many options": ["--negative-prompt", "blurry", "--width", "40", "--height", "24", "--guidance-scale", "4.25",
                     "--sampler", "euler_a_trailing", "--seed", "7", "--clip-skip", "1", "--vae-tiling",
                     "--no-ai-mark", "--prompt-syntax", "plain", "--dtype", "bfloat16"],
    "empty negative": ["--negative-prompt", ""],
    "second pass": ["--hires-scale", "1.5", "--hires-strength", "0.5", "--hires-steps", "6"],
    "second of a batch of three": ["--num-images", "3", "--batch", "3"],
    "files": ["--init-image", "start.png", "--strength", "0.55", "--embedding", "toy.safetensors:<toy>",
              "--vae", "vae.safetensors"],
    "LoRA": ["--lora", "me.safetensors:0.7"],
}


@pytest.mark.parametrize("family, case", [("sd1", case) for case in CASES] + [("sdxl", "defaults"), ("sdxl", "files")])
def test_like_repeats_an_image_byte_by_byte(tiny_folder, tmp_path: Path, family: str, case: str) -> None:
    if case == "files":
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(
            tmp_path / "start.png")
        tensors = {"emb_params": vectors(2, 32)} if family == "sd1" else {"clip_l": vectors(2, 32),
                                                                            "clip_g": vectors(2, 40)}
        save_file(tensors, tmp_path / "toy.safetensors")
        (tmp_path / "layouts").mkdir()
        vae_files(make_vae(family), tmp_path / "layouts")
        shutil.copy(tmp_path / "layouts" / "ldm.safetensors", tmp_path / "vae.safetensors")
    if case == "LoRA":
        write_lora(tmp_path / "me.safetensors")
    prompt = "ein (Mädchen:1.2) <toy>, 東京"
    drawn = sample(tmp_path, "--model", str(tiny_folder(family)), *STEPS, "--prompt", prompt, *CASES[case])
    image = drawn[1 if len(drawn) > 1 else 0]
    repeated, said = again(tmp_path, image)
    assert repeated.read_bytes() == image.read_bytes()
    assert "warning" not in said
    other, _ = again(tmp_path, image, "--seed", "99")
    assert np.abs(pixels(other) - pixels(image)).max() > 1


def test_guidance_of_the_class_stands_in_the_metadata(tiny_folder, tmp_path: Path) -> None:
    """diffusers' default of each pipeline class, resolved, so that the image says it."""
    for family, scale in (("sd1", 7.5), ("sdxl", 5.0)):
        words = ["--model", str(tiny_folder(family)), *STEPS, "--prompt", "a cat", "--output", family]
        unset, given = sample(tmp_path, *words)[0], sample(tmp_path, *words, "--guidance-scale", str(scale))[0]
        assert np.array_equal(pixels(unset), pixels(given))
        assert json.loads(texts_of(unset)["sdtune"])["options"]["guidance_scale"] == scale
        assert web_entries(texts_of(unset)["parameters"])["CFG scale"] == str(scale)


def test_like_says_what_changed(tiny_sd1: Path, tmp_path: Path) -> None:
    """Another model, another file of the same name: a warning each; a file that is gone: exit 2 with its hash."""
    model = tmp_path / "model-a"
    shutil.copytree(tiny_sd1, model)
    save_file({"emb_params": vectors(1, 32)}, tmp_path / "toy.safetensors")
    (image,) = sample(tmp_path, "--model", "model-a", *STEPS, "--prompt", "a toy", "--embedding", "toy.safetensors")
    record = json.loads(texts_of(image)["sdtune"])
    save_file({"emb_params": vectors(1, 32, seed=4)}, tmp_path / "toy.safetensors")
    config = json.loads((model / "unet" / "config.json").read_text())
    (model / "unet" / "config.json").write_text(json.dumps(config | {"_note": 1}))
    repeated, said = again(tmp_path, image)
    assert "toy.safetensors: has changed" in said and "--model" in said
    assert repeated.read_bytes() != image.read_bytes()
    (tmp_path / "toy.safetensors").unlink()
    gone = run(["sample", "--like", str(image), "--output", "gone"], cwd=tmp_path)
    assert gone.returncode == 2 and record["files"]["toy.safetensors"] in gone.stderr
    shutil.rmtree(model)
    save_file({"emb_params": vectors(1, 32)}, tmp_path / "toy.safetensors")
    lost = run(["sample", "--like", str(image), "--output", "gone"], cwd=tmp_path)
    assert lost.returncode == 2 and "model-a" in lost.stderr
    moved, _ = again(tmp_path, image, "--model", str(tiny_sd1))
    assert np.array_equal(pixels(moved), pixels(image))


def test_like_reads_texts_of_web_interfaces(tiny_sd1: Path, tmp_path: Path) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("parameters", "a (cat:1.2), ein Mädchen\nNegative prompt: blurry\nSteps: 4, Sampler: DPM++ 2M Karras, "
                  "CFG scale: 5.5, Seed: 12, Size: 40x24, Model hash: 0123456789, Model: \"someone's, model\", "
                  "Clip skip: 2, Lora hashes: \"me: 0123\", Version: v1.9.0")
    Image.new("RGB", (8, 8)).save(tmp_path / "web.png", pnginfo=info)
    path, said = again(tmp_path, tmp_path / "web.png", "--model", str(tiny_sd1))
    (same,) = sample(tmp_path, "--model", str(tiny_sd1), "--prompt", "a (cat:1.2), ein Mädchen", "--negative-prompt",
                     "blurry", "--steps", "4", "--sampler", "dpm++2m_karras", "--guidance-scale", "5.5", "--seed", "12",
                     "--width", "40", "--height", "24", "--clip-skip", "1")
    assert path.read_bytes() == same.read_bytes()
    for left_out in ("Model hash", "someone's, model", "Lora hashes"):
        assert left_out in said
    Image.new("RGB", (8, 8)).save(tmp_path / "bare.png")
    refused = run(["sample", "--like", "bare.png"], cwd=tmp_path)
    assert refused.returncode == 2 and "bare.png" in refused.stderr


def web_image(path: Path, text: str) -> Path:
    """An image as web interfaces write it."""
    info = PngImagePlugin.PngInfo()
    info.add_text("parameters", text)
    Image.new("RGB", (8, 8)).save(path, pnginfo=info)
    return path


@pytest.mark.parametrize("family, theirs, ours", [("sd1", 2, 1), ("sdxl", 1, 0), ("sdxl", 2, 0), ("sdxl", 3, 1)])
def test_clip_skip_of_web_interfaces_depends_on_the_model(tiny_folder, tmp_path: Path, family: str, theirs: int,
                                                          ours: int) -> None:
    """SDXL's 1 and 2 are the same layer there, the penultimate one, from which ours counts."""
    text = f"a cat\nSteps: 3, Sampler: Euler, CFG scale: 5.5, Seed: 12, Size: 32x32, Clip skip: {theirs}"
    words = ["--model", str(tiny_folder(family))]
    path, said = again(tmp_path, web_image(tmp_path / "web.png", text), *words)
    sampling = [*words, *STEPS, "--prompt", "a cat", "--sampler", "euler", "--guidance-scale", "5.5", "--seed", "12",
                "--width", "32", "--height", "32"]
    (same,), (other,) = (sample(tmp_path, *sampling, "--clip-skip", str(skip)) for skip in (ours, 1 - ours))
    assert path.read_bytes() == same.read_bytes() and "Clip skip" not in said
    assert np.abs(pixels(other) - pixels(same)).max() > 0
    written = web_entries(texts_of(same)["parameters"]).get("Clip skip", "1")
    assert written == (str(theirs) if ours else "1")
    given, _ = again(tmp_path, tmp_path / "web.png", *words, "--clip-skip", str(1 - ours))
    assert given.read_bytes() == other.read_bytes()


def test_tags_of_web_interfaces_that_nothing_here_answers_to(tiny_sd1: Path, tmp_path: Path) -> None:
    """A warning each, and the prompt without them; a LoRA that is there counts, and one's own prompt is refused as before."""
    (tmp_path / "loras").mkdir()
    write_lora(tmp_path / "loras" / "me.safetensors")
    tags = ["<lora:foo:0.8>", "<hypernet:bar:1>", "<lora:me:0.5:0.6>"]
    text = f"a cat {tags[0]} at sea {tags[1]} {tags[2]} <lyco:me:0.7>\nSteps: 3, Sampler: Euler, CFG scale: 7.5, Seed: 3"
    words = ["--model", str(tiny_sd1)]
    path, said = again(tmp_path, web_image(tmp_path / "web.png", text), *words)
    assert all(any("warning" in line and tag in line for line in said.splitlines()) for tag in tags), said
    sampling = [*words, *STEPS, "--sampler", "euler", "--guidance-scale", "7.5", "--seed", "3"]
    (same,) = sample(tmp_path, *sampling, "--prompt", "a cat at sea <lora:me:0.7>")
    (without,) = sample(tmp_path, *sampling, "--prompt", "a cat at sea")
    assert path.read_bytes() == same.read_bytes() and np.abs(pixels(without) - pixels(same)).max() > 0
    for tag in tags:
        refused = run(["sample", "--like", "web.png", *words, "--prompt", f"a dog {tag}"], cwd=tmp_path)
        assert refused.returncode == 2 and "--prompt: " in refused.stderr and tag in refused.stderr, refused.stderr


def test_files_need_not_be_named_in_utf_8(tiny_sd1: Path, tmp_path: Path) -> None:
    """The image is written, whatever the files are called that it was made from; its metadata have U+FFFD there."""
    name, shown = "caf\udce9", "caf\ufffd"
    shutil.copytree(tiny_sd1, tmp_path / name)
    Image.new("RGB", (32, 32), (90, 120, 150)).save(tmp_path / "start.png")
    (tmp_path / "start.png").rename(tmp_path / f"{name}.png")
    write_lora(tmp_path / "me.safetensors")
    (tmp_path / "me.safetensors").rename(tmp_path / f"{name}.safetensors")
    (tmp_path / "layouts").mkdir()
    vae_files(make_vae("sd1"), tmp_path / "layouts")
    (tmp_path / "layouts" / "ldm.safetensors").rename(tmp_path / f"{name}-vae.safetensors")
    (image,) = sample(tmp_path, "--model", name, *STEPS, "--prompt", "a cat", "--init-image", f"{name}.png", "--vae",
                      f"{name}-vae.safetensors", "--lora", f"{name}.safetensors:0.7")
    record = json.loads(texts_of(image)["sdtune"])
    named = {"init_image": f"{shown}.png", "vae": f"{shown}-vae.safetensors", "lora": [f"{shown}.safetensors:0.7"]}
    assert record["model"]["path"] == shown and named.items() <= record["options"].items()
    entries = web_entries(texts_of(image)["parameters"])
    assert entries["Model"] == shown and entries["VAE"] == f"{shown}-vae.safetensors"
    assert entries["Lora hashes"].startswith(f"{shown}: ")
    gone = run(["sample", "--like", str(image)], cwd=tmp_path)
    assert gone.returncode == 2 and record["files"][f"{shown}.png"] in gone.stderr


def test_image_of_python_is_the_program_s(tiny_sd1: Path, tmp_path: Path) -> None:
    (image,) = sample(tmp_path, "--model", str(tiny_sd1), *STEPS, "--prompt", "a cat", "--seed", "3")
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tiny_sd1, device="cpu")
    assert np.array_equal(pixels(image), np.asarray(ours("a cat", num_inference_steps=3, seed=3).images[0], dtype=int))


def test_grid_that_no_viewer_could_open(tiny_sd1: Path, tmp_path: Path) -> None:
    """Said before anything is generated."""
    words = ["sample", "--model", str(tiny_sd1), *STEPS, "--prompt", "a cat", "--grid", "grid.png"]
    done = run([*words, "--num-images", "90"], cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "samples").exists() and not done.stdout
    assert all(text in done.stderr for text in ("--grid", "got about 17644x", "16384"))


def test_complaint_training_samples_are_what_sample_generates_kohya_1358(tmp_path: Path) -> None:
    """The last validation image of a run is what `sample` generates from its model: weights and long prompts included."""
    base = write_base(make_pipeline("sd1", tmp_path / "vocabulary"), tmp_path / "base", block_out_channels=(16, 32),
                      layers_per_block=1, attention_head_dim=2)
    photos = write_photos(tmp_path / "photos", 2, seed=0)
    prompt = "a (sks person:1.4), " + "at the sea, " * 40
    done = run(["train", "--base", str(base), "--images", str(photos), "--output", str(tmp_path / "run"), "--device",
                "cpu", "--with-prior-preservation=false", "--train-batch-size=1", "--max-train-steps=2",
                "--validation-prompt", prompt, "--validation-steps=2", "--num-validation-images=1", "--seed=4",
                "--validation-negative-prompt", "[blurry]", "--validation-inference-steps=3", "--report-to=none"])
    assert done.returncode == 0, done.stderr
    (seen,) = (tmp_path / "run" / "samples" / "step-00000002").glob("*seed*.png")
    words = ["--model", str(tmp_path / "run"), "--prompt", prompt, "--negative-prompt", "[blurry]", *STEPS, "--seed", "4"]
    (drawn,) = sample(tmp_path, *words)
    assert np.array_equal(pixels(drawn), pixels(seen))
    (plain,) = sample(tmp_path, *words, "--prompt-syntax", "plain")
    assert np.abs(pixels(plain) - pixels(seen)).max() > 0

"""Weighted and long prompts beside A1111's rules on transformers' CLIP, clip skip beside diffusers', and the program."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import sdtune
import torch
from PIL import Image

import a1111_prompts as a1111
from program import run

FAMILIES = ["sd1", "sd2", "sdxl"]
TOLERANCE = 1e-5  # relative L2 of prompt embeddings
LONG = "a portrait of a person in a green coat, soft light from the left, " * 12
NO_COMMAS = "a portrait of a person in a green coat with soft light from the left " * 12
PROMPTS = {
    "plain": "a photo of sks person",
    "weight": "a photo of (sks person:1.4) on a beach",
    "round and square": "a (green) hat and [a blue] coat",
    "nested": "a ((very (old:1.3)) [small [red] tree]) house",
    "never closed": "a photo (of a [person",
    "closed too often": "a photo) of a] person:1.2) here",
    "escapes": r"a photo \(of a\) person \[sks\] \\ at 12:30 \x",
    "colon and spaces": "ratio 4:3, (a cat: 1.25 ) and (dog:+0.5)",
    "negative weight": "a photo (of rain:-0.5)",
    "empty": "",
    "only marks": "()[]",
    "long": LONG,
    "long without commas": NO_COMMAS,
    "long and weighted": LONG[:300] + "(a hat:1.3), " + LONG,
    "break": "a photo of a person BREAK (a beach:1.2) and (the sea)",
    "break at both ends": "BREAK a cat BREAK",
    "no break": "BREAKFAST and a_BREAK",
    "beyond ASCII": "ein (Mädchen:1.2) im Café, 東京",
}
Pair = tuple[Any, Any]


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def pairs(tiny_folder: Callable[[str], Path]) -> Callable[[str], Pair]:
    """pairs(family): diffusers' pipeline and ours of one folder."""
    loaded: dict[str, Pair] = {}

    def pair_of(family: str) -> Pair:
        if family not in loaded:
            theirs = diffusers.DiffusionPipeline.from_pretrained(tiny_folder(family))
            theirs.set_progress_bar_config(disable=True)
            # Where diffusers looks for the final norm; transformers 5 writes CLIPTextModel without this level.
            if not hasattr(theirs.text_encoder, "text_model"):
                theirs.text_encoder.__dict__["text_model"] = theirs.text_encoder
            loaded[family] = theirs, sdtune.StableDiffusionPipeline.from_pretrained(tiny_folder(family), device="cpu")
        return loaded[family]

    return pair_of


def distance(got: np.ndarray, expected: torch.Tensor | np.ndarray) -> float:
    expected = np.asarray(expected)
    assert got.shape == expected.shape and np.isfinite(expected).all()
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_weighted_prompts_follow_a1111(pairs: Callable[[str], Pair], family: str, name: str) -> None:
    theirs, ours = pairs(family)
    expected, pooled = a1111.encode(theirs, PROMPTS[name])
    got = ours.encode_prompt(PROMPTS[name], negative_prompt="", prompt_syntax="weighted")
    assert distance(got[0], expected) <= TOLERANCE
    empty, _ = a1111.encode(theirs, "", count=expected.shape[1] // 77)
    assert distance(got[1], empty) <= TOLERANCE
    if pooled is not None:
        assert distance(got[2], pooled) <= TOLERANCE


def test_random_prompts(pairs: Callable[[str], Pair]) -> None:
    """Marks and words in any order and number. The tolerance is wider: where a chunk's mean is near zero, the quotient of
    the means makes rounding grow; a wrong token or weight moves it by more than 1e-2."""
    theirs, ours = pairs("sd1")
    choose = random.Random(5)
    words = ["a", "cat", "portrait", ",", ", ", " ", "(", ")", ":1.3)", "[", "]", "\\(", "\\", ":", "12", "sea ", "é"]
    tried = 0
    while tried < 60:
        prompt = "".join(choose.choice(words) for _ in range(choose.randint(1, 160)))
        try:
            got = ours.encode_prompt(prompt, prompt_syntax="weighted")[0]
        except sdtune.ConfigError as error:  # [a:12] changes the prompt between steps in A1111
            assert "between steps" in str(error)
            continue
        assert distance(got, a1111.encode(theirs, prompt)[0]) <= 1e-3, prompt
        tried += 1


# One rule left out, or another number in it.
MUTANTS: dict[str, tuple[str, Callable[[Any], torch.Tensor]]] = {
    "weight": (PROMPTS["weight"], lambda pipe: a1111.encode(pipe, "a photo of (sks person:1.39) on a beach")[0]),
    "square": ("a [blue] coat", lambda pipe: a1111.encode(pipe, "a (blue:0.9) coat")[0]),
    "mean": (PROMPTS["weight"], lambda pipe: a1111.encode(pipe, PROMPTS["weight"], keep_mean=False)[0]),
    "comma": (LONG, lambda pipe: a1111.encode(pipe, LONG, comma_reach=0)[0]),
    "break": ("a cat BREAK a dog", lambda pipe: a1111.encode(pipe, "a dog BREAK a cat")[0]),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_rule_is_seen(pairs: Callable[[str], Pair], mutant: str) -> None:
    theirs, ours = pairs("sd1")
    prompt, other = MUTANTS[mutant]
    got = ours.encode_prompt(prompt, prompt_syntax="weighted")[0]
    assert distance(got, other(theirs)) > 10 * TOLERANCE


@pytest.mark.parametrize(("bias", "keeps_mean"), [(0.0, False), (0.1, True)])
def test_a_mean_that_is_rounding_scales_nothing(tiny_folder: Callable[[str], Path], tmp_path: Path, bias: float, keeps_mean: bool) -> None:
    """Behind a norm without bias the mean of a chunk is 0, and a quotient of such means another number on each processor."""
    theirs = diffusers.DiffusionPipeline.from_pretrained(tiny_folder("sd1"))
    norm = getattr(theirs.text_encoder, "text_model", theirs.text_encoder).final_layer_norm
    norm.weight.fill_(1)
    norm.bias.fill_(bias)
    theirs.save_pretrained(tmp_path)
    ours = sdtune.StableDiffusionPipeline.from_pretrained(tmp_path, device="cpu")
    for name in ("weight", "round and square", "nested", "negative weight", "beyond ASCII"):
        got = ours.encode_prompt(PROMPTS[name], prompt_syntax="weighted")[0]
        assert distance(got, a1111.encode(theirs, PROMPTS[name], keep_mean=keeps_mean)[0]) <= TOLERANCE, name
        if keeps_mean:
            assert distance(got, a1111.encode(theirs, PROMPTS[name], keep_mean=False)[0]) > 10 * TOLERANCE, name


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_is_diffusers_and_the_default(pairs: Callable[[str], Pair], family: str) -> None:
    """Brackets are letters, and what does not fit is cut; without marks weighted is the same."""
    theirs, ours = pairs(family)
    for prompt in (PROMPTS["weight"], PROMPTS["long"]):
        expected = theirs.encode_prompt(prompt=prompt, device="cpu", num_images_per_prompt=1,
                                        do_classifier_free_guidance=True, negative_prompt="blurry")
        for got, wanted in zip(ours.encode_prompt(prompt, negative_prompt="blurry"), expected):
            assert distance(got, wanted) <= TOLERANCE
        assert ours.encode_prompt(prompt, prompt_syntax="weighted")[0].shape[1] == 77 * a1111.chunk_count(theirs, prompt)
    plain, weighted = (ours.encode_prompt("a photo, of a cat", prompt_syntax=s)[0] for s in ("plain", "weighted"))
    assert np.array_equal(plain, weighted)
    plain, weighted = (ours.encode_prompt("a (photo)", prompt_syntax=s)[0] for s in ("plain", "weighted"))
    assert distance(plain, weighted) > 10 * TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_images_of_a_long_prompt(pairs: Callable[[str], Pair], family: str) -> None:
    """The shorter of prompt and negative prompt gets empty chunks; diffusers generates from the same embeddings."""
    theirs, ours = pairs(family)
    for prompt, negative in (("a (cat:1.3)", LONG), (LONG, "blurry, [ugly]")):
        count = max(a1111.chunk_count(theirs, text) for text in (prompt, negative))
        (states, pooled), (other, other_pooled) = (a1111.encode(theirs, text, count) for text in (prompt, negative))
        of_xl = {} if pooled is None else {"pooled_prompt_embeds": pooled, "negative_pooled_prompt_embeds": other_pooled}
        expected = theirs(prompt_embeds=states, negative_prompt_embeds=other, num_inference_steps=4, guidance_scale=7.5,
                          generator=torch.Generator().manual_seed(2), output_type="latent", **of_xl).images
        call = {"negative_prompt": negative, "num_inference_steps": 4, "guidance_scale": 7.5, "seed": 2,
                "output_type": "latent"}
        got = ours(prompt, prompt_syntax="weighted", **call).images
        assert distance(got, expected) <= 1e-4
        plain = ours(prompt, **call).images
        assert distance(plain, expected) > 1e-3


def test_no_negative_prompt_of_sdxl_stays_zeros(pairs: Callable[[str], Pair]) -> None:
    _, ours = pairs("sdxl")
    states, other, _, other_pooled = ours.encode_prompt(LONG, prompt_syntax="weighted")
    assert other.shape == states.shape and not other.any() and not other_pooled.any()


@pytest.mark.parametrize("clip_skip", [None, 0, 1])
@pytest.mark.parametrize("family", FAMILIES)
def test_clip_skip_is_diffusers(pairs: Callable[[str], Pair], family: str, clip_skip: int | None) -> None:
    """Of the prompt alone, as diffusers' pipelines; weighted skips in the negative prompt too, as A1111."""
    theirs, ours = pairs(family)
    prompt, negative = "a photo of a cat", "blurry"
    expected = theirs.encode_prompt(prompt=prompt, device="cpu", num_images_per_prompt=1, clip_skip=clip_skip,
                                    do_classifier_free_guidance=True, negative_prompt=negative)
    for got, wanted in zip(ours.encode_prompt(prompt, negative_prompt=negative, clip_skip=clip_skip), expected):
        assert distance(got, wanted) <= TOLERANCE
    states, other = ours.encode_prompt(prompt, negative_prompt=negative, clip_skip=clip_skip,
                                       prompt_syntax="weighted")[:2]
    assert distance(states, a1111.encode(theirs, prompt, clip_skip=clip_skip or 0)[0]) <= TOLERANCE
    assert distance(other, a1111.encode(theirs, negative, clip_skip=clip_skip or 0)[0]) <= TOLERANCE
    if clip_skip:
        assert distance(ours.encode_prompt(prompt)[0], expected[0]) > 10 * TOLERANCE


WRONG = {
    "prompt_syntax": ({"prompt_syntax": "a1111"}, "weighted, plain"),
    "clip_skip": ({"clip_skip": 3}, "0..2"),
    "weight": ({"prompt": "a (cat:1.2.3)", "prompt_syntax": "weighted"}, "1.2.3"),
    "editing": ({"prompt": "a [cat:dog:0.5]", "prompt_syntax": "weighted"}, "between steps"),
    "alternation": ({"prompt": "a [cat|dog]", "prompt_syntax": "weighted"}, "between steps"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_named(pairs: Callable[[str], Pair], case: str) -> None:
    options, named = WRONG[case]
    with pytest.raises(sdtune.ConfigError, match=case if case in options else "prompt") as caught:
        pairs("sd1")[1](**{"prompt": "a cat", "output_type": "latent"} | options)
    assert named in str(caught.value)


def draw(folder: Path, target: Path, *more: str) -> tuple[np.ndarray, str]:
    """(pixels, parameters) of the program's image."""
    done = run(["sample", "--model", str(folder), "--steps", "3", "--seed", "3", "--output", str(target), *more])
    assert done.returncode == 0, done.stderr
    with Image.open(done.stdout.strip()) as image:
        return np.asarray(image, dtype=int), image.info["parameters"]


def test_program_reads_weights_unless_told_not_to(pairs: Callable[[str], Pair], tiny_sd1: Path, tmp_path: Path) -> None:
    prompt = "a (cat:1.6) BREAK on [a tree]"
    ours = pairs("sd1")[1]
    for words, keywords in (([], {"prompt_syntax": "weighted"}), (["--prompt-syntax", "plain"], {}),
                            (["--clip-skip", "1"], {"prompt_syntax": "weighted", "clip_skip": 1})):
        wanted = np.asarray(ours(prompt, num_inference_steps=3, seed=3, **keywords).images[0], dtype=int)
        others = [np.asarray(ours(prompt, num_inference_steps=3, seed=3, **k).images[0], dtype=int)
                  for k in ({}, {"prompt_syntax": "weighted"}, {"clip_skip": 1}) if k != keywords]
        got, parameters = draw(tiny_sd1, tmp_path, "--prompt", prompt, *words)
        assert np.abs(got - wanted).max() <= 1
        assert all(np.abs(got - other).max() > 1 for other in others)
        assert parameters.startswith(prompt + "\n")
        assert ("Clip skip: 2" in parameters) == ("--clip-skip" in words)


def test_program_says_what_plain_cuts(tiny_sd1: Path, tmp_path: Path) -> None:
    words = ["sample", "--model", str(tiny_sd1), "--prompt", LONG, "--steps", "1", "--output", str(tmp_path)]
    assert "left out" not in run(words).stderr
    warned = run([*words, "--prompt-syntax", "plain"])
    assert warned.returncode == 0 and "--prompt-syntax weighted" in warned.stderr


@pytest.mark.parametrize("words, named", [
    (["--prompt-syntax", "a1111"], ["--prompt-syntax", "got a1111", "weighted, plain"]),
    (["--clip-skip", "-1"], ["--clip-skip", "got -1", "0"]),
    (["--clip-skip", "3"], ["clip_skip", "got 3", "0..2"]),
])
def test_program_refuses(tiny_sd1: Path, tmp_path: Path, words: list[str], named: list[str]) -> None:
    done = run(["sample", "--model", str(tiny_sd1), "--prompt", "a", "--steps", "1", "--output", "out", *words],
               cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert all(text in done.stderr.splitlines()[-1] for text in named), done.stderr

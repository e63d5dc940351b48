"""A vocabulary learnt from captions, beside transformers' CLIPTokenizer on the written folder."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import sdtune
from transformers import CLIPTokenizer

from test_tokenizer import EDGE_TEXTS, differences, random_texts, their_ids

COLORS = ["red", "green", "blue", "yellow", "purple"]
THINGS = ["a striped sweater", "a woolly hat", "sunglasses", "a wide-brimmed hat", "a jacket with a tie"]
PLACES = ["on a beach", "in a city at night", "in snowy mountains", "against a brick wall", "by the sea"]
OPENINGS = ["a photo of a person", "a pencil sketch of a person", "a monochrome portrait of a person"]


def captions(count: int) -> list[str]:
    rng = random.Random(3)
    return [f"{rng.choice(OPENINGS)}, wearing {rng.choice(THINGS)} in {rng.choice(COLORS)}, {rng.choice(PLACES)}"
            for _ in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("learnt")
    sdtune.CLIPTokenizer.learn(captions(2000), 700).save_pretrained(path)
    return path


def test_ids_equal_those_of_transformers(folder: Path) -> None:
    ours, theirs = sdtune.CLIPTokenizer.from_pretrained(folder), CLIPTokenizer.from_pretrained(str(folder))
    texts = captions(500) + list(random_texts(2000, seed=8)) + EDGE_TEXTS
    assert differences(ours, theirs, texts) == []
    assert ours.vocab_size == len(theirs) <= 700
    for text in captions(20) + ["", "sks person", "long " * 100]:
        framed = theirs(text, padding="max_length", truncation=True, max_length=77)["input_ids"]
        assert ours(text).tolist() == [framed]


def test_the_learnt_and_the_loaded_tokenizer_are_one(folder: Path) -> None:
    learnt = sdtune.CLIPTokenizer.learn(captions(2000), 700)
    loaded = sdtune.CLIPTokenizer.from_pretrained(folder)
    for text in captions(50) + list(random_texts(300, seed=9)):
        assert learnt.encode(text) == loaded.encode(text)
    assert (learnt.bos_token_id, learnt.eos_token_id, learnt.pad_token_id) == (
        loaded.bos_token_id, loaded.eos_token_id, loaded.pad_token_id)


def test_words_of_the_captions_are_single_ids_and_sks_falls_into_pieces(folder: Path) -> None:
    ours, theirs = sdtune.CLIPTokenizer.from_pretrained(folder), CLIPTokenizer.from_pretrained(str(folder))
    for word in ("person", "photo", "sunglasses", "mountains"):
        assert len(ours.encode(word)) == 1, word
    pieces = ours.encode("sks")
    assert len(pieces) >= 2 and theirs.decode(pieces).strip() == "sks"
    assert ours.eos_token_id not in pieces


def test_learning_is_deterministic_and_counts_matter(folder: Path, tmp_path: Path) -> None:
    texts = captions(2000)
    random.Random(1).shuffle(texts)
    sdtune.CLIPTokenizer.learn(texts, 700).save_pretrained(tmp_path)
    for file in ("vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"):
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes(), file
    sdtune.CLIPTokenizer.learn(texts[:1000] + texts[:1] * 5000, 700).save_pretrained(tmp_path)
    assert (tmp_path / "merges.txt").read_bytes() != (folder / "merges.txt").read_bytes()


def test_another_order_of_merges_is_seen(folder: Path, tmp_path: Path) -> None:
    """The mutant: the comparison with transformers notices merges that go in another order."""
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
    lines[1:-1] = reversed(lines[1:-1])
    for file in ("vocab.json", "tokenizer_config.json"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    other = sdtune.CLIPTokenizer.from_pretrained(tmp_path)
    theirs = CLIPTokenizer.from_pretrained(str(folder))
    assert any(other.encode(text) != their_ids(theirs, text) for text in captions(20))


def test_vocabulary_is_in_clips_order(folder: Path) -> None:
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    assert tokens[0] == "!" and tokens[256] == "!</w>"
    assert tokens[-2:] == ["<|startoftext|>", "<|endoftext|>"]
    assert all(tokens[256 + index] == f"{tokens[index]}</w>" for index in range(256))


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(sdtune.ConfigError, match="514"):
        sdtune.CLIPTokenizer.learn(["a"], 500)

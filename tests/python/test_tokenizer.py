"""The tokenizer beside transformers' CLIPTokenizer, on CLIP's real vocabulary."""

from __future__ import annotations

import json
import random
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sdtune
from transformers import CLIPTokenizer

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from clip_vocabulary import write_clip_vocabulary  # noqa: E402

START, END = "<|startoftext|>", "<|endoftext|>"
NUM_RANDOM_TEXTS = 12_000
EDGE_TEXTS = [
    "", " ", "\n\t", "a", "A Photo of SKS person!", "it's we've they'll I'm he'd don't you're 'S 'LL ''s !'s",
    "a\u0301e\u0308 \u1e9b\u0323 \ufb01 \u212b \u0130stanbul \u03a3\u03a3\u03c2",
    "\u0344\u0345\u0f73\u0f75 \u2adc \ufb1d", "12345 \u0663\u0664 \u2167 \u00bd \u2460",
    "\U0001f469\u200d\U0001f52c \U0001f1e9\U0001f1ea \u2764\ufe0f 1\ufe0f\u20e3",
    "\x00\x01\x1f\x7f\x80\x85\x9f\xad", "\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\u180e\u200b\ufeff",
    "\ufffd\ufffe\uffff\U0010ffff\U000e0001", "<|startoftext|>", "x<|endoftext|>y <|EndOfText|> <|STARTOFTEXT|>!",
    "<|startoftext|><|endoftext|>", "<|startoftext", "|endoftext|>", "<<|endoftext|>>", "!", "wow!! !?",
    "\u4f60\u597d\uff0c\u4e16\u754c", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "supercalifragilistic" * 30,
    "e" + "\u0301\u0323\u0327" * 300, "a " * 5000,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer folder of SD 1.x."""
    path = tmp_path_factory.mktemp("tokenizer")
    write_clip_vocabulary(path)
    return path


@pytest.fixture(scope="module")
def pair(folder: Path) -> tuple[sdtune.CLIPTokenizer, CLIPTokenizer]:
    """Ours and transformers'."""
    return load_pair(folder)


def load_pair(folder: Path) -> tuple[sdtune.CLIPTokenizer, CLIPTokenizer]:
    return sdtune.CLIPTokenizer.from_pretrained(folder), CLIPTokenizer.from_pretrained(str(folder))


def their_ids(tokenizer: CLIPTokenizer, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def random_texts(count: int, seed: int) -> Iterator[str]:
    """Texts of all planes: any code point, single scripts, marks, words with punctuation, special tokens, spaces."""
    rng = random.Random(seed)
    words = ["photo", "of", "a", "SKS", "person", "caf\u00e9", "na\u00efve", "\u0421\u041e\u0411\u0410\u041a\u0410",
             "it's", START, END, "<|EndOfText|>"]

    def code_point(low: int, high: int) -> str:
        value = rng.randrange(low, high)
        return chr(value) if not 0xD800 <= value < 0xE000 else " "

    kinds: list[Callable[[], str]] = [
        lambda: code_point(0, 0x80), lambda: code_point(0, 0x250), lambda: code_point(0x250, 0x3000),
        lambda: code_point(0x3000, 0x10000), lambda: code_point(0x10000, 0x20000),
        lambda: code_point(0x20000, 0x110000), lambda: code_point(0x1F300, 0x1FB00),
        lambda: code_point(0x300, 0x370), lambda: code_point(0x1100, 0x1200),
        lambda: rng.choice(words), lambda: rng.choice(" \t\n\u00a0\u3000"), lambda: rng.choice("!?'.,-#@$%<|>")]
    for _ in range(count):
        mix = rng.sample(kinds, rng.randint(1, 5))
        yield "".join(rng.choice(mix)() for _ in range(rng.randint(0, 40)))


def differences(ours: sdtune.CLIPTokenizer, theirs: CLIPTokenizer, texts: list[str]) -> list[str]:
    expected = theirs(texts, add_special_tokens=False)["input_ids"]
    return [text for text, ids in zip(texts, expected) if ours.encode(text) != ids]


def test_ids_equal_on_random_unicode(pair: tuple) -> None:
    texts = list(random_texts(NUM_RANDOM_TEXTS, seed=1))
    assert len(set(texts)) >= 10_000
    assert differences(*pair, texts) == []


def test_ids_equal_on_every_code_point(pair: tuple) -> None:
    """Each alone between letters, so that a wrong class, case or composition shows; 64 to a text."""
    points = [chr(value) for value in range(0x110000) if not 0xD800 <= value < 0xE000]
    rng = random.Random(0)
    inside = [point for point in points if ord(point) < 0x33480 or rng.random() < 0.01]
    texts = ["x".join(inside[at : at + 64]) for at in range(0, len(inside), 64)]
    assert differences(*pair, texts) == []


@pytest.mark.parametrize("text", EDGE_TEXTS, ids=lambda text: ascii(text)[:30])
def test_edge_texts(pair: tuple, text: str) -> None:
    ours, theirs = pair
    assert ours.encode(text) == their_ids(theirs, text)
    framed = theirs(text, padding="max_length", truncation=True, max_length=77)["input_ids"]
    assert ours(text).tolist() == [framed]
    assert ours.truncated(text) == max(0, len(their_ids(theirs, text)) - 75)


def test_marks_of_every_kind_reorder_and_compose_alike(pair: tuple) -> None:
    """Each mark behind a letter and before marks of the highest, the lowest and a middle combining class."""
    marks = [chr(value) for value in range(0x300, 0x20000) if unicodedata.category(chr(value)) in ("Mn", "Mc", "Cn")]
    texts = [f"a{mark}\u0301 A{mark}\u0334 e{mark}\u0323\u0302 {mark}\u0327" for mark in marks]
    assert differences(*pair, texts) == []


def test_another_vocabulary_gives_other_ids(pair: tuple, tmp_path: Path) -> None:
    """The mutant: two merges exchanged are seen by the same comparison."""
    write_clip_vocabulary(tmp_path)
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").split("\n")
    lines[1:400] = reversed(lines[1:400])
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    other = sdtune.CLIPTokenizer.from_pretrained(tmp_path)
    texts = list(random_texts(200, seed=2)) + ["a photo of the man in the street"]
    assert differences(other, pair[1], texts) != []


@pytest.mark.parametrize("text", ["the quick brown fox " * 52_429, "a" * 1_048_576, "e\u0301\u0323" * 200_000,
                                  "\U0001f600" * 262_144, " " * 1_048_576, "\u0323\u0301" * 100_000],
                         ids=["words", "one-word", "marks", "emoji", "spaces", "marks-alone"])
def test_a_megabyte(pair: tuple, text: str) -> None:
    """Equal, and not in quadratic time, which would take hours."""
    ours, theirs = pair
    assert ours.encode(text) == their_ids(theirs, text)


def test_invalid_utf8_names_the_byte(pair: tuple) -> None:
    wrong = ((b"ab\xff", 2), (b"\xc3", 0), (b"abc\xed\xa0\x80", 3), (b"\xf4\x90\x80\x80", 0), (b"a\xc0\x80", 1))
    for data, byte in wrong:
        with pytest.raises(sdtune.DataError, match=f"byte {byte}"):
            pair[0].encode(data)


def test_batches_are_framed_row_by_row(pair: tuple) -> None:
    texts = ["a cat", "", "one two three " * 40]
    ids = pair[0](texts)
    assert ids.shape == (3, 77) and ids.dtype == "int64"
    assert ids.tolist() == pair[1](texts, padding="max_length", truncation=True, max_length=77)["input_ids"]


def flags(content: str, **changed: bool) -> dict:
    return {"content": content, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False} | changed


def typed(content: str, **changed: bool) -> dict:
    return {"__type": "AddedToken"} | flags(content, **changed)


# Files as they are found in the wild: SD 1.x, SDXL, SD 2.x, with added words, or bare.
LAYOUTS: dict[str, dict[str, dict]] = {
    "sd1": {"tokenizer_config.json": {"bos_token": typed(START), "eos_token": typed(END), "unk_token": typed(END),
                                      "pad_token": END, "model_max_length": 77, "tokenizer_class": "CLIPTokenizer",
                                      "do_lower_case": True, "errors": "replace"},
            "special_tokens_map.json": {"bos_token": flags(START), "eos_token": flags(END), "pad_token": END,
                                        "unk_token": flags(END)}},
    "sd2": {"tokenizer_config.json": {"model_max_length": 77, "bos_token": typed(START), "eos_token": typed(END)},
            "special_tokens_map.json": {"bos_token": flags(START), "eos_token": flags(END), "pad_token": "!",
                                        "unk_token": flags(END)}},
    "sdxl_2": {"tokenizer_config.json": {
        "added_tokens_decoder": {"0": flags("!", normalized=False) | {"special": True},
                                 "49406": flags(START) | {"special": True}, "49407": flags(END) | {"special": True}},
        "bos_token": START, "eos_token": END, "unk_token": END, "pad_token": "!", "model_max_length": 77}},
    "added_words": {"tokenizer_config.json": {
        "added_tokens_decoder": {"49408": flags("<sks>", normalized=False, special=False),
                                 "49409": flags("<Cat>", special=False, lstrip=True),
                                 "49410": flags("zyxw", special=False, single_word=True, rstrip=True),
                                 "49411": flags("<sks> man", normalized=False, special=False)},
        "model_max_length": 77}},
    "legacy_words": {"tokenizer_config.json": {"model_max_length": 77},
                     "added_tokens.json": {"<sks>": 49408, "<Cat>": 49409}},
    "new_pad": {"tokenizer_config.json": {"model_max_length": 20, "pad_token": "<pad>"}},
}
LAYOUT_TEXTS = ["A <|ENDOFTEXT|> b! <|endoftext|>", "cat!!<sks>!",
                "a <Cat> <cat>  <sks> man, zyxw zyxws zyxw\u00e9 azyxw ZYXW  zyxw.",
                "x <pad> y", "", "<sks><sks> man<Cat>", "wow! " * 40]


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("single_file", [False, True], ids=["vocab+merges", "tokenizer.json"])
def test_layouts(folder: Path, tmp_path: Path, name: str, single_file: bool) -> None:
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(folder / file, tmp_path)
    for file, content in LAYOUTS[name].items():
        (tmp_path / file).write_text(json.dumps(content), encoding="utf-8")
    if single_file:
        theirs = CLIPTokenizer.from_pretrained(str(tmp_path))
        theirs.save_pretrained(str(tmp_path / "single"))
        assert (tmp_path / "single" / "tokenizer.json").exists() and not (tmp_path / "single" / "vocab.json").exists()
        tmp_path = tmp_path / "single"
    ours, theirs = load_pair(tmp_path)
    assert (ours.bos_token_id, ours.eos_token_id, ours.pad_token_id) == (
        theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id)
    assert ours.vocab_size == len(theirs)
    for text in LAYOUT_TEXTS + list(random_texts(100, seed=5)):
        assert ours(text)[0].tolist() == theirs(text, padding="max_length", truncation=True)["input_ids"], text


@pytest.mark.parametrize("name", LAYOUTS)
def test_saved_folder_means_the_same(folder: Path, tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(folder / file, source)
    for file, content in LAYOUTS[name].items():
        (source / file).write_text(json.dumps(content), encoding="utf-8")
    before = sdtune.CLIPTokenizer.from_pretrained(source)
    before.save_pretrained(target)
    ours, theirs = load_pair(target)
    texts = LAYOUT_TEXTS + list(random_texts(100, seed=6))
    for text in texts:
        assert before(text).tolist() == ours(text).tolist()
        assert ours(text)[0].tolist() == theirs(text, padding="max_length", truncation=True)["input_ids"]
    assert (target / "merges.txt").read_text() == (source / "merges.txt").read_text()
    assert json.loads((target / "vocab.json").read_text()) == json.loads((source / "vocab.json").read_text())


def damage(folder: Path, file: str, change: Callable[[str], str]) -> None:
    path = folder / file
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


DAMAGES = {
    "other_vocabulary": ("vocab.json", lambda text: json.dumps({"a": 0, "b": 1, "a</w>": 2}), "merges.txt"),
    "cut_json": ("vocab.json", lambda text: text[:1000], "vocab.json"),
    "list": ("vocab.json", lambda text: "[1, 2]", "vocab.json"),
    "same_id_twice": ("vocab.json", lambda text: text.replace('"$": 3', '"$": 4', 1), "vocab.json"),
    "negative_id": ("vocab.json", lambda text: text.replace('"$": 3', '"$": -3', 1), "vocab.json"),
    "merge_of_three": ("merges.txt", lambda text: text.replace("i n\n", "i n x\n", 1), "merges.txt:2"),
    "unknown_merge": ("merges.txt", lambda text: text + "qqqq zzzz\n", "do not belong together"),
    "other_class": ("tokenizer_config.json", lambda text: text.replace("CLIPTokenizer", "T5Tokenizer"), "T5Tokenizer"),
    "length": ("tokenizer_config.json", lambda text: text.replace("77", "1e30"), "model_max_length"),
    "html": ("vocab.json", lambda text: "<!DOCTYPE html>", "vocab.json"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_are_named(folder: Path, tmp_path: Path, name: str) -> None:
    file, change, expected = DAMAGES[name]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    sdtune.CLIPTokenizer.from_pretrained(tmp_path)
    damage(tmp_path, file, change)
    with pytest.raises(sdtune.WeightError, match=expected):
        sdtune.CLIPTokenizer.from_pretrained(tmp_path)


def test_missing_files_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(sdtune.WeightError, match="vocab.json"):
        sdtune.CLIPTokenizer.from_pretrained(tmp_path)
    shutil.copy(folder / "vocab.json", tmp_path)
    with pytest.raises(sdtune.WeightError, match="merges.txt"):
        sdtune.CLIPTokenizer.from_pretrained(tmp_path)

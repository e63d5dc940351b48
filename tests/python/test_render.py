"""`sdtune render`: images, captions and labels of synthetic people."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from program import SDTUNE, run

ATTRIBUTES = {
    "hair_style": {"bald", "short", "afro", "long", "bob", "bun", "mohawk", "quiff"},
    "facial_hair": {"none", "moustache", "goatee", "beard"},
    "hat": {"none", "beanie", "cap", "top hat", "wide-brimmed hat"},
    "glasses": {"none", "round glasses", "square glasses", "sunglasses"},
    "clothes": {"t-shirt", "striped sweater", "hoodie", "shirt", "jacket"},
    "expression": {"neutral", "smile", "laugh", "sad", "surprised"},
    "place": {"wall", "beach", "forest", "city night", "mountains", "bricks"},
    "style": {"photo", "black and white", "sketch", "cartoon"},
}


def render(output: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = run(["render", "--output", str(output), *words])
    assert done.returncode == 0, done.stderr
    return done


def labels_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_images_captions_and_labels_match(tmp_path: Path) -> None:
    done = render(tmp_path / "r", "--count", "4", "--views", "2", "--size", "48", "--set", "validation", "--seed", "7")
    assert done.stdout.splitlines() == [str(tmp_path / "r" / "labels.jsonl")]
    assert "8 images of 48 px" in done.stderr
    labels = labels_of(tmp_path / "r")
    assert [label["file"] for label in labels] == [
        f"validation-{person:06}-{view:03}.png" for person in range(7, 11) for view in range(2)]
    for label in labels:
        image = Image.open(tmp_path / "r" / label["file"])
        assert (image.size, image.mode) == ((48, 48), "RGB")
        assert image.text["Software"].startswith("sdtune ") and image.text["Source"] == "rendered"
        assert image.text["Description"] == label["caption"]
        caption = (tmp_path / "r" / label["file"]).with_suffix(".txt").read_text(encoding="utf-8")
        assert caption == label["caption"] + "\n" and "person" in caption
        seen = label["identity"] | label["context"]
        for attribute, names in ATTRIBUTES.items():
            assert seen[attribute] in names
        assert ("glasses" in caption) <= (seen["glasses"] != "none")
        assert len(label["identity"]) == 29 and len(seen["light"]) == 3
    first, second = labels[0], labels[1]
    assert first["identity"] == second["identity"] and first["context"] != second["context"]
    assert first["identity"] != labels[2]["identity"]


def test_a_seed_is_an_image(tmp_path: Path) -> None:
    """Whatever the number of threads, of images beside it, and whichever the process."""
    words = ["--count", "5", "--views", "2", "--size", "32"]
    for threads in (1, 2, 5):
        render(tmp_path / f"t{threads}", *words, "--threads", str(threads))
    first = contents(tmp_path / "t1")
    assert len(first) == 21
    assert contents(tmp_path / "t2") == first and contents(tmp_path / "t5") == first
    render(tmp_path / "one", "--seed", "3", "--count", "1", "--first-view", "1", "--size", "32")
    assert contents(tmp_path / "one")["training-000003-001.png"] == first["training-000003-001.png"]
    render(tmp_path / "other", "--seed", "5", "--count", "1", "--size", "32")
    assert contents(tmp_path / "other")["training-000005-000.png"] not in first.values()


def test_detail_is_what_is_asked_for_at_any_size(tmp_path: Path) -> None:
    """The people whom the bundled base knows, unless the simpler ones are asked for; labels say which it is."""
    folders = {}
    for name, words in {"small": ["--size", "64", "--detail", "64"], "large": [], "fine": ["--size", "64"], "coarse": ["--detail", "64"]}.items():
        folders[name] = tmp_path / name
        render(folders[name], "--count", "3", *words)
    assert [{label["detail"] for label in labels_of(folders[name])} for name in ("small", "large", "fine", "coarse")] == [
        {"64"}, {"128"}, {"128"}, {"64"}]
    for coarse, fine in (("small", "fine"), ("coarse", "large")):
        for one, other in zip(labels_of(folders[coarse]), labels_of(folders[fine]), strict=True):
            assert one["caption"] == other["caption"] and one["person_seed"] == other["person_seed"]
            assert other["identity"] == one["identity"] | {key: other["identity"][key] for key in ("age", "stubble")}
            assert abs(other["context"]["yaw_turns"]) <= 35 / 360
            pixels = [np.asarray(Image.open(folders[name] / one["file"]), dtype=float) for name in (coarse, fine)]
            assert pixels[0].shape == pixels[1].shape and abs(pixels[0] - pixels[1]).mean() > 3


def test_sets_have_no_person_and_no_image_in_common(tmp_path: Path) -> None:
    people: list[int] = []
    images: list[int] = []
    bounds = {"training": (0, 2**32), "validation": (2**32, 2**33), "reserved": (2**33, 2**33 + 50)}
    for name, (low, high) in bounds.items():
        for seed in (0, 47 if name == "reserved" else 2**32 - 3):
            folder = tmp_path / f"{name}-{seed}"
            render(folder, "--set", name, "--seed", str(seed), "--count", "3", "--size", "16")
            labels = labels_of(folder)
            assert all(low <= label["person_seed"] < high for label in labels)
            people += [label["person_seed"] for label in labels]
            images += [label["picture_seed"] for label in labels]
    assert len(set(people)) == len(people) == 18
    assert len(set(images)) == len(images)


def test_a_subject_is_a_reserved_person(tmp_path: Path) -> None:
    render(tmp_path / "a", "--subject", "3", "--views", "2", "--size", "24")
    render(tmp_path / "b", "--set", "reserved", "--seed", "3", "--count", "1", "--views", "2", "--size", "24")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert labels_of(tmp_path / "a")[0]["person_seed"] == 2**33 + 3


def test_contact_sheet_shows_every_image(tmp_path: Path) -> None:
    sheet = tmp_path / "sheets" / "all.png"
    done = render(tmp_path / "r", "--count", "2", "--views", "3", "--size", "20", "--contact-sheet", str(sheet))
    assert done.stdout.splitlines()[-1] == str(sheet)
    pixels = np.asarray(Image.open(sheet))
    gap = 4
    assert pixels.shape == (2 * 20 + 3 * gap, 3 * 20 + 4 * gap, 3)
    for index, label in enumerate(labels_of(tmp_path / "r")):
        top, left = gap + index // 3 * (20 + gap), gap + index % 3 * (20 + gap)
        assert np.array_equal(pixels[top:top + 20, left:left + 20], np.asarray(Image.open(tmp_path / "r" / label["file"])))


def test_captions_can_be_left_out(tmp_path: Path) -> None:
    render(tmp_path / "r", "--count", "2", "--size", "16", "--no-captions")
    assert not list((tmp_path / "r").glob("*.txt")) and labels_of(tmp_path / "r")[0]["caption"]


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    words = ["--count", "2", "--size", "16", "--contact-sheet", str(tmp_path / "sheet.png")]
    render(tmp_path / "r", *words)
    (tmp_path / "r" / "mine.jpg").write_bytes(b"mine")
    before = contents(tmp_path / "r")
    done = run(["render", "--output", str(tmp_path / "r"), "--size", "16"])
    assert done.returncode == 2 and "is not empty" in done.stderr and contents(tmp_path / "r") == before
    done = run(["render", "--output", str(tmp_path / "s"), *words])
    assert done.returncode == 2 and "--contact-sheet" in done.stderr and not (tmp_path / "s").exists()
    render(tmp_path / "r", "--overwrite", "--seed", "9", *words)
    assert (tmp_path / "r" / "mine.jpg").read_bytes() == b"mine"
    assert sorted(path.name for path in (tmp_path / "r").glob("*.png")) == [
        "training-000009-000.png", "training-000010-000.png"]


@pytest.mark.parametrize(("words", "said"), [
    (["--size", "15"], "--size: is out of range (got 15; allowed: 16 <= x <= 1024)"),
    (["--subject", "50"], "--subject: is out of range (got 50; allowed: 0 <= x <= 49)"),
    (["--subject", "1", "--set", "training"], "--set: contradicts --subject"),
    (["--subject", "1", "--seed", "2"], "--seed: contradicts --subject"),
    (["--set", "reserved", "--seed", "40", "--count", "11"], "--count: is beyond the last person of the set"),
    (["--views", "65536", "--first-view", "1"], "--views: is beyond the last image of a person"),
    (["--set", "test"], "--set: "),
    (["--detail", "256"], "--detail: "),
    (["--contact-sheet", "sheet.jpg"], "--contact-sheet: does not end with .png"),
    (["--contact-sheet", "s.png", "--size", "1024", "--count", "200"], "--contact-sheet: would have more than 100"),
    (["here"], "here: unexpected word"),
])
def test_bad_input_is_one_line_and_writes_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    done = run(["render", *words], cwd=tmp_path)
    assert done.returncode == 2
    assert f"sdtune: error: {said}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_render_is_a_whole_smaller_one(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = subprocess.Popen([str(SDTUNE), "render", "--output", str(folder), "--count", "100000", "--size", "16"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(folder.glob("*.png")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    files = [label["file"] for label in labels_of(folder)]
    assert sorted(files) == sorted(path.name for path in folder.glob("*.png"))
    assert 0 < len(files) < 100000


def test_train_can_read_the_folder(tmp_path: Path, tiny_sd1: Path) -> None:
    """check, which reads photos as train does, finds each image with its caption."""
    render(tmp_path / "r", "--count", "3", "--size", "32")
    done = run(["check", "--images", str(tmp_path / "r"), "--base", str(tiny_sd1), "--output", str(tmp_path / "run"),
                "--json"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "labels.jsonl" not in json.dumps([problem for problem in json.loads(done.stdout).get("problems", [])])

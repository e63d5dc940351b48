"""`sdtune doctor`, the advice of `check`, and crops that show the face: planted faults are all found, clean sets raise none.

The faces are rendered portraits at a known place (metadata.jsonl says where), and one photo where it lies beside this
checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import face_networks
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter
from program import ROOT, SDTUNE, run
from tiny_models import make_pipeline
from training_reference import write_base

import sdtune

ME = ROOT / "examples" / "me"
DOG = ROOT / "examples" / "backpack_dog"
ASTRONAUT = ROOT.parent / "shared" / "data" / "faces" / "astronaut.png"
ASTRONAUT_FACE = (177, 67, 95, 95)  # left, top, width, height; eyes and mouth as one sees them
# Of a portrait of 256 px: what the renderer shows of brows to chin lies within, with every pose it renders.
RENDERED_FACE = (70, 60, 116, 130)


def doctor(photos: Path, *options: object) -> dict:
    ended = run(["doctor", "--images", str(photos), "--resolution=64", "--json", *(str(word) for word in options)])
    assert ended.returncode in (0, 2), ended.stderr
    return json.loads(ended.stdout)


def said_of(report: dict, kind: str = "warnings") -> dict[str, list[str]]:
    """File name -> what is said of it."""
    found: dict[str, list[str]] = {}
    for problem in report[kind]:
        found.setdefault(Path(problem["where"]).name, []).append(problem["what"])
    return found


@pytest.mark.parametrize("photos", [ME, DOG])
def test_clean_sets_raise_no_alarm(photos: Path) -> None:
    """Nor does a dog made of cloth, in no photo of which a face is found."""
    report = doctor(photos)
    assert report["warnings"] == [] and report["problems"] == []
    assert len(report["photos"]) == 5


def test_names_and_captions_command_no_terminal(tmp_path: Path) -> None:
    shutil.copy(next(ME.glob("*.png")), tmp_path / "a\x1b[2J.png")
    (tmp_path / "a\x1b[2J.txt").write_text("a \x1b]0;owned\x07 person \x9b2J", encoding="utf-8")
    ended = run(["doctor", "--images", str(tmp_path), "--resolution=64"])
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    assert "a\\x1b[2J.png" in said and "a \\x1b]0;owned\\x07 person \\xc2\\x9b2J" in said
    assert not any(ord(letter) < 32 and letter != "\n" or 127 <= ord(letter) < 160 for letter in said), said


def test_rendered_people_raise_no_alarm(tmp_path: Path) -> None:
    for subject in (11, 12):
        folder = tmp_path / str(subject)
        assert run(["render", "--subject", str(subject), "--views", "6", "--size", "128", "--output",
                    str(folder)]).returncode == 0
        assert doctor(folder)["warnings"] == []


@pytest.mark.parametrize(("subject", "other"), [(11, 12), (0, 5), (7, 2)])
def test_a_render_of_another_person_is_named_and_nothing_else(subject: int, other: int, tmp_path: Path) -> None:
    for number, views in ((subject, 5), (other, 1)):
        assert run(["render", "--subject", str(number), "--views", str(views), "--size", "128", "--no-captions", "--output",
                    str(tmp_path / str(number))]).returncode == 0
    (odd,) = (tmp_path / str(other)).glob("*.png")
    odd.rename(tmp_path / str(subject) / "odd.png")
    assert said_of(doctor(tmp_path / str(subject))) == {"odd.png": ["shows another person than the other photos"]}


def test_a_photo_of_another_person_is_named_by_a_face_recognition_network(tmp_path: Path) -> None:
    """Photos of a camera: images that differ little, and one that differs much. The networks are made by hand."""
    photos = tmp_path / "photos"
    photos.mkdir()
    draw = np.random.default_rng(0)
    for i in range(5):
        noise = draw.normal(0, 60, (face_networks.SIDE, face_networks.SIDE, 3))
        Image.fromarray((face_networks.smooth_image(1 if i < 4 else 2) + noise).clip(0, 255).astype(np.uint8)).save(photos / f"{i}.png")
    options = ["--face-model", face_networks.detector(tmp_path / "yunet.onnx"),
               "--identity-model", face_networks.recognizer(tmp_path / "network.onnx")]
    outliers = [name for name, said in said_of(doctor(photos, *options)).items()
                 if "shows another person than the other photos" in said]
    assert outliers == ["4.png"]
    assert not any("another person" in what for said in said_of(doctor(photos, *options[:2])).values() for what in said)
    ended = run(["doctor", "--images", str(photos), "--identity-model", "nowhere.onnx"])
    assert ended.returncode == 2 and "identity_model: is no face recognition network (got nowhere.onnx" in ended.stderr


def plant(folder: Path) -> Path:
    """The clean set and one file of each fault."""
    shutil.copytree(ME, folder)
    first, second, third = sorted(folder.glob("*.png"))[:3]
    image = Image.open(first).convert("RGB")
    image.resize((200, 200), Image.Resampling.LANCZOS).save(folder / "copy-small.jpg", quality=70)
    ImageEnhance.Brightness(Image.open(second).convert("RGB")).enhance(1.12).save(folder / "copy-bright.png")
    shutil.copy(third, folder / "copy-same.png")
    Image.open(sorted(folder.glob("*.png"))[-1]).convert("RGB").filter(ImageFilter.GaussianBlur(4)).transpose(
        Image.Transpose.FLIP_LEFT_RIGHT).save(folder / "blurred.png")
    image.crop((30, 20, 80, 70)).save(folder / "tiny.png")
    wall = Image.new("RGB", (300, 300), (120, 150, 180))
    ImageDraw.Draw(wall).line([(x, (x * 37) % 300) for x in range(0, 300, 3)], fill=(20, 30, 10), width=3)
    wall.save(folder / "no_person.jpg")
    sideways = Image.open(sorted(folder.glob("reserved*.png"))[4]).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6
    sideways.transpose(Image.Transpose.ROTATE_90).transpose(Image.Transpose.FLIP_TOP_BOTTOM).save(
        folder / "phone.jpg", exif=exif)
    (folder / "cut.jpg").write_bytes((folder / "copy-small.jpg").read_bytes()[:3000])
    (folder / "iphone.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(16))
    return folder


def test_planted_faults_are_all_found(tmp_path: Path) -> None:
    report = doctor(plant(tmp_path / "me"))
    warnings, problems = said_of(report), said_of(report, "problems")
    pairs = [(name, what) for name, said in warnings.items() for what in said if "the same" in what]
    named = {name for name, _ in pairs} | {word for _, what in pairs for word in what.split()}
    assert {"copy-small.jpg", "copy-bright.png", "copy-same.png"} <= named
    assert any("blurred" in what for what in warnings["blurred.png"])
    assert any("got 50x50 px; needed: 64x64" in what for what in warnings["tiny.png"])
    assert any("phone.jpg" in note for note in report["notes"])
    assert set(problems) == {"cut.jpg", "iphone.heic"}
    assert "truncated" in problems["cut.jpg"][0] and "HEIC" in problems["iphone.heic"][0]
    assert any("no face" in what for what in warnings["no_person.jpg"])


@pytest.mark.skipif(not ASTRONAUT.exists(), reason="the photo lies beside this checkout")
def test_two_faces_none_and_one(tmp_path: Path) -> None:
    (tmp_path / "me").mkdir()
    photo = Image.open(ASTRONAUT).convert("RGB")
    photo.save(tmp_path / "me" / "one.png")
    two = Image.new("RGB", (1024, 512))
    two.paste(photo, (0, 0))
    two.paste(photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (512, 0))
    two.save(tmp_path / "me" / "two.jpg", quality=90)
    photo.rotate(180).filter(ImageFilter.UnsharpMask()).save(tmp_path / "me" / "head down.png")
    warnings = said_of(doctor(tmp_path / "me"))
    assert "one.png" not in warnings
    assert any("2 faces" in what for what in warnings["two.jpg"])
    assert any("no face" in what for what in warnings["head down.png"])


def canvases(folder: Path, portrait: Image.Image, face: tuple[int, int, int, int], names: str) -> dict[str, tuple]:
    """The portrait at the edges of wide and tall canvases, where the middle square cuts the face. Name -> face box."""
    folder.mkdir(exist_ok=True)
    side = portrait.size[0]
    boxes = {}
    for number, (width, height, left, top) in enumerate(
            [(3 * side, side, 0, 0), (3 * side, side, 2 * side, 0), (side, 3 * side, 0, 0),
             (side, 3 * side, 0, 2 * side), (5 * side // 2, side, side * 3 // 2, 0)]):
        noise = np.random.default_rng(number).integers(90, 110, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
        canvas = Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)
        canvas.paste(portrait, (left, top))
        name = f"{names}-{number}.png"
        canvas.save(folder / name)
        boxes[name] = (left + face[0], top + face[1], face[2], face[3])
    return boxes


def cell_images(sheet: Path, count: int, side: int) -> list[np.ndarray]:
    """The images of a contact sheet: found by trying every row and column where a cell may begin."""
    pixels = sdtune.load_image(sheet)
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // columns)
    gap = 4
    height = (pixels.shape[0] - gap) // rows
    return [pixels[gap + row * height:gap + row * height + side,
                   gap + column * (side + gap):gap + column * (side + gap) + side]
            for row in range(rows) for column in range(columns)][:count]


def crop_shows(photo: Path, box: tuple[float, ...], crop: np.ndarray, side: int) -> bool:
    """Whether the pixels of the face are among those of the crop: looked for at every place it may have been cut."""
    image = Image.open(photo).convert("RGB")
    width, height = image.size
    scale = side / min(width, height)
    resized = sdtune.resize_image(np.asarray(image), max(side, int(width * scale)), max(side, int(height * scale)))
    for y in range(resized.shape[0] - side + 1):
        for x in range(resized.shape[1] - side + 1):
            if np.array_equal(resized[y:y + side, x:x + side], crop):
                left, top, face_width, face_height = (value * scale for value in box)
                return (x - 0.5 <= left and y - 0.5 <= top and left + face_width <= x + side + 0.5
                        and top + face_height <= y + side + 0.5)
    raise AssertionError("the crop is no part of the photo")


def shown_faces(folder: Path, boxes: dict[str, tuple], style: str, sheet: Path) -> list[bool]:
    side = 64
    ended = run(["doctor", "--images", str(folder), "--resolution", str(side), "--crop-style", style, "--contact-sheet",
                 str(sheet)])
    assert ended.returncode == 0, ended.stderr
    names = sorted(boxes, key=lambda name: [int(part) if part.isdigit() else part
                                            for part in name.replace(".", "-").split("-")])
    crops = cell_images(sheet, len(names), side)
    return [crop_shows(folder / name, boxes[name], crop, side) for name, crop in zip(names, crops, strict=True)]


def test_crops_show_the_face_where_it_is_known(tmp_path: Path) -> None:
    """Rendered truth: in every case where the middle would cut it."""
    boxes: dict[str, tuple] = {}
    for number, portrait in enumerate(sorted(ME.glob("*.png"))[:4]):
        boxes |= canvases(tmp_path / "me", Image.open(portrait).convert("RGB"), RENDERED_FACE, f"p{number}")
    (tmp_path / "me" / "metadata.jsonl").write_text(
        "".join(json.dumps({"file_name": name, "face": box}) + "\n" for name, box in boxes.items()))
    assert len(boxes) == 20
    assert shown_faces(tmp_path / "me", boxes, "center", tmp_path / "center.png") == [False] * 20
    assert shown_faces(tmp_path / "me", boxes, "face", tmp_path / "face.png") == [True] * 20


@pytest.mark.skipif(not ASTRONAUT.exists(), reason="the photo lies beside this checkout")
def test_crops_show_the_face_that_is_found(tmp_path: Path) -> None:
    photo = Image.open(ASTRONAUT).convert("RGB")
    boxes = canvases(tmp_path / "me", photo.resize((256, 256)), tuple(value // 2 for value in ASTRONAUT_FACE), "a")
    boxes |= canvases(tmp_path / "me", photo, ASTRONAUT_FACE, "b")
    assert not any(shown_faces(tmp_path / "me", boxes, "center", tmp_path / "center.png"))
    assert all(shown_faces(tmp_path / "me", boxes, "face", tmp_path / "face.png"))


def test_contact_sheet_shows_the_pixels_that_are_trained(tmp_path: Path) -> None:
    """Pixel for pixel what crop_image, which training uses, makes of the files."""
    ended = run(["doctor", "--images", str(ME), "--resolution=64", "--contact-sheet", str(tmp_path / "sheet.png")])
    assert ended.returncode == 0 and (tmp_path / "sheet.png").exists(), ended.stderr
    cells = cell_images(tmp_path / "sheet.png", 5, 64)
    for cell, photo in zip(cells, sorted(ME.glob("*.png")), strict=True):
        np.testing.assert_array_equal(cell, sdtune.crop_image(sdtune.load_image(photo), 64))
        assert not np.array_equal(cell, sdtune.crop_image(sdtune.load_image(photo), 64, "bilinear"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor")
    return write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base", block_out_channels=(16, 32),
                      layers_per_block=1, attention_head_dim=2)


def words(command: str, base: Path, photos: Path, output: Path, *options: str) -> list[str]:
    return [command, "--base", str(base), "--images", str(photos), "--output", str(output), "--device=cpu",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--max-train-steps=2", *options]


def test_check_advises_and_passes(base: Path, tmp_path: Path) -> None:
    photos = plant(tmp_path / "me")
    (photos / "cut.jpg").unlink()
    (photos / "iphone.heic").unlink()
    ended = run(words("check", base, photos, tmp_path / "run", "--json"))
    assert ended.returncode == 0, ended.stdout
    report = json.loads(ended.stdout)
    assert report["ok"] and "blurred.png" in str(report["warnings"])
    shown = run(words("check", base, photos, tmp_path / "run"))
    assert "sdtune: warning: " in shown.stderr and "is blurred" in shown.stderr


def test_face_crop_changes_the_run_and_falls_back_aloud(base: Path, tmp_path: Path) -> None:
    photos = tmp_path / "me"
    boxes = canvases(photos, Image.open(sorted(ME.glob("*.png"))[0]).convert("RGB"), RENDERED_FACE, "p")
    losses = {}
    for name, style, known in [("center", "center", True), ("face", "face", True), ("lost", "face", False)]:
        table = "".join(json.dumps({"file_name": file, "face": box}) + "\n" for file, box in boxes.items())
        (photos / "metadata.jsonl").write_text(table if known else "")
        ended = run(words("train", base, photos, tmp_path / name, f"--crop-style={style}", "--report-to=none"))
        assert ended.returncode == 0, ended.stderr
        assert ("cropped at the centre" in ended.stderr) == (not known)
        losses[name] = json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[0])["loss"]
    assert losses["center"] != losses["face"] and losses["lost"] == losses["center"]
    ended = run(words("train", base, ME, tmp_path / "squares", "--crop-style=face", "--report-to=none"))
    assert ended.returncode == 0 and "cropped at the centre" not in ended.stderr, "nothing of a square is cut away"


def test_resume_refuses_other_faces_only_where_they_count(base: Path, tmp_path: Path) -> None:
    """The place of a face decides the crop, so it is part of a run with crop_style: face and of no other."""
    photos = tmp_path / "me"
    boxes = canvases(photos, Image.open(sorted(ME.glob("*.png"))[0]).convert("RGB"), RENDERED_FACE, "p")
    for style, code in (("center", 0), ("face", 2)):
        options = (f"--crop-style={style}", "--report-to=none", "--checkpointing-steps=1")
        for shift, more in ((0, ()), (9, ("--max-train-steps=3", "--resume-from-checkpoint=latest"))):
            (photos / "metadata.jsonl").write_text("".join(
                json.dumps({"file_name": file, "face": [box[0] + shift, *box[1:]]}) + "\n" for file, box in boxes.items()))
            ended = run(words("train", base, photos, tmp_path / style, *options, *more))
            assert ended.returncode == (code if shift else 0), ended.stderr
    assert "p-0.png" in ended.stderr


def test_face_model_is_checked(base: Path, tmp_path: Path) -> None:
    for given, words_said in [("nowhere.xml", "is no file (got nowhere.xml; allowed: a cascade .xml or a YuNet .onnx)"),
                              (str(ME / "README.md"), "is of an unknown kind")]:
        ended = run(words("check", base, ME, tmp_path / "run", f"--face-model={given}"))
        assert ended.returncode == 2
        assert f"face_model: {words_said}" in ended.stderr, ended.stderr
    ended = run(words("check", base, ME, tmp_path / "run", "--crop-style=faces"))
    assert ended.returncode == 2 and "allowed: one of center, face, random" in ended.stderr
    ended = run(words("check", base, ME, tmp_path / "run", "--crop-style=face", "--center-crop=false"))
    assert ended.returncode == 2 and "crop_style: and center_crop contradict each other" in ended.stderr


def test_helper_answers_line_by_line() -> None:
    """The protocol of sdtune-faces: a model that is none is named, and an image without a face has none."""
    helper = SDTUNE.parent / "sdtune-faces"
    assert helper.exists(), "sdtune-faces was not built: scripts/apt-packages.txt lists what it needs"
    bad = subprocess.run([helper, str(ME / "README.md")], capture_output=True, text=True, check=False,
                         stdin=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert bad.returncode == 2
    assert "README.md cannot be read by OpenCV" in json.loads(bad.stdout)["error"]
    cascade = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt.xml"
    image = json.dumps({"width": 40, "height": 30}).encode() + b"\n" + bytes(40 * 30 * 3)
    good = subprocess.run([helper, cascade], input=2 * image, capture_output=True, check=False)
    assert good.stdout.decode().splitlines() == ['{"ready":true}', '{"faces":[]}', '{"faces":[]}'], good.stderr
    cut = subprocess.run([helper, cascade], input=image[:-1], capture_output=True, check=False)
    assert cut.returncode == 2 and b"ends inside an image" in cut.stdout

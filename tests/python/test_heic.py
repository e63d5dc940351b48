"""HEIC photos against pillow-heif, which brings a libheif of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pillow_heif
import pytest
from PIL import Image
from program import run
from test_image import scene

import sdtune

# Two versions of libheif and of the HEVC decoder round the colour conversion differently.
MOST, MEAN = 4, 1.0

pillow_heif.register_heif_opener()


def seen(path: Path) -> np.ndarray:
    """As pillow-heif shows it."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(np.int64)


def write(path: Path, image: Image.Image, **options: object) -> Path:
    image.save(path, "HEIF", quality=-1, chroma=444, **options)
    return path


def assert_alike(ours: np.ndarray, reference: np.ndarray) -> None:
    assert ours.shape == reference.shape
    difference = np.abs(ours.astype(np.int64) - reference)
    assert difference.max() <= MOST and difference.mean() <= MEAN


def test_pixels_are_those_that_pillow_shows(tmp_path: Path) -> None:
    path = write(tmp_path / "photo.heic", scene(64, 48))
    assert_alike(sdtune.load_image(path), seen(path))
    assert_alike(sdtune.load_image(path), np.asarray(scene(64, 48)).astype(np.int64))


def test_a_phones_subsampled_colours(tmp_path: Path) -> None:
    path = tmp_path / "photo.HEIC"
    scene(128, 96).save(path, "HEIF", quality=90, chroma=420)
    difference = np.abs(sdtune.load_image(path).astype(np.int64) - seen(path))
    assert difference.mean() <= 2


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_turned_photo_is_upright(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = write(tmp_path / "turned.heic", scene(64, 48), exif=exif.tobytes())
    image = sdtune.load_image(path)
    assert image.shape == ((64, 48, 3) if orientation > 4 else (48, 64, 3))
    assert_alike(image, seen(path))


def test_clear_pixels_are_white(tmp_path: Path) -> None:
    image = scene(64, 48).convert("RGBA")
    image.putalpha(Image.new("L", image.size, 0))
    assert (sdtune.load_image(write(tmp_path / "clear.heic", image)) == 255).all()


def test_a_cut_file_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "photo.heic", scene(64, 48))
    path.write_bytes(path.read_bytes()[:-200])
    for read in (sdtune.load_image, sdtune.verify_image):
        with pytest.raises(sdtune.DataError, match="photo.heic.*HEIC"):
            read(path)


def test_inspect_describes_a_heic_photo(tmp_path: Path) -> None:
    path = write(tmp_path / "photo.HEIC", scene(64, 48))
    found = json.loads(run(["inspect", str(path), "--json"]).stdout)
    assert (found["kind"], found["format"], found["width"], found["height"]) == ("picture", "HEIC", 64, 48)


def test_check_and_doctor_take_heic_photos(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for index in range(3):
        write(photos / f"IMG_{index}.HEIC", scene(96, 96, seed=index))
    looked = run(["doctor", "--images", str(photos), "--resolution", "64", "--contact-sheet", str(tmp_path / "sheet.png")])
    assert looked.returncode == 0, looked.stderr
    assert (tmp_path / "sheet.png").is_file()

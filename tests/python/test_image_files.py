"""Files that Pillow reads without complaint: JPEGs with padding, PNGs whose orientation is in a text. Damaged ones beside them
are refused, or not turned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps, PngImagePlugin
from test_image import DECODE_MAX, ORIENTATION, difference, refused, saved, scene

import sdtune

BASELINE, PROGRESSIVE, RESTARTS = {"quality": 90}, {"quality": 90, "progressive": True}, {"quality": 90, "restart_marker_blocks": 4}
END = b"\xff\xd9"


def behind_the_first_segment(content: bytes) -> int:
    """Where APP0 ends, which Pillow writes first."""
    assert content[2:4] == b"\xff\xe0"
    return 4 + int.from_bytes(content[4:6], "big")


@pytest.mark.parametrize("options", [BASELINE, PROGRESSIVE, RESTARTS], ids=["baseline", "progressive", "restarts"])
@pytest.mark.parametrize("count", [1, 7, 8, 40, 5000])
def test_padding_of_a_jpeg_is_no_damage(tmp_path: Path, options: dict[str, object], count: int) -> None:
    """Zeros before the end mark and between segments of the header, few and many: libjpeg reads some bytes ahead."""
    whole = saved("jpeg", **options)
    place = behind_the_first_segment(whole)
    for name, content in {"end": whole[:-2] + bytes(count) + END, "header": whole[:place] + bytes(count) + whole[place:]}.items():
        path = tmp_path / f"{name}.jpg"
        path.write_bytes(content)
        assert difference(sdtune.load_image(path), np.asarray(Image.open(path))) <= DECODE_MAX
        assert sdtune.verify_image(path)[:2] == scene().size


def test_what_is_no_padding_is_damage(tmp_path: Path) -> None:
    """Other bytes in the same places, zeros before a restart mark, and zeros in place of pixels up to the end mark."""
    whole, restarts = saved("jpeg", **BASELINE), saved("jpeg", **RESTARTS)
    place, restart = behind_the_first_segment(whole), restarts.index(b"\xff\xd0")
    path = tmp_path / "damaged.jpg"
    for content in (whole[:-2] + b"\x12\x34" * 20 + END, whole[:place] + b"\x12\x34" * 20 + whole[place:],
                    restarts[:restart] + bytes(40) + restarts[restart:]):
        path.write_bytes(content)
        assert "damaged" in refused(path)


@pytest.mark.parametrize("quality", [75, 95, 100])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_hole_up_to_the_end_mark_is_damage(tmp_path: Path, quality: int, progressive: bool) -> None:
    """Zeros are few bits of a block: of noise, the image is full before they end, and the rest of them could be padding."""
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8))
    path = tmp_path / "hole.jpg"
    noise.save(path, quality=quality, progressive=progressive)
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        kept = int(len(whole) * share)
        path.write_bytes(whole[:kept] + bytes(len(whole) - 2 - kept) + END)
        assert "damaged" in refused(path)


def raw_profile(exif: bytes) -> str:
    """The text in which ImageMagick keeps EXIF: its kind, its length, lines of 72 hexadecimal digits."""
    digits = exif.hex()
    return "\n".join(["", "exif", f"{len(exif):8d}", *(digits[at:at + 72] for at in range(0, len(digits), 72)), ""])


def exif_of(**tags: int | str) -> bytes:
    """An EXIF block as Pillow writes it."""
    exif = Image.Exif()
    for tag, value in tags.items():
        exif[{"orientation": ORIENTATION, "description": 0x010E}[tag]] = value
    return exif.tobytes()


def xmp(orientation: int, form: str = 'tiff:Orientation="{}"') -> str:
    return f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description {form.format(orientation)} /></x:xmpmeta>'


def with_texts(path: Path, *texts: tuple[str, str, str], **options: object) -> Path:
    """A PNG with texts: the kind of chunk, the key, the value."""
    info = PngImagePlugin.PngInfo()
    for kind, key, value in texts:
        add = info.add_itxt if kind.startswith("iTXt") else info.add_text
        add(key, value, zip=kind in ("zTXt", "iTXt compressed"))
    scene().save(path, pnginfo=info, **options)
    return path


def assert_turned(path: Path, orientation: int) -> None:
    """As Pillow turns it, and by that orientation."""
    stored = Image.open(path)
    assert stored.getexif().get(ORIENTATION, 1) == orientation
    reference = np.asarray(ImageOps.exif_transpose(stored).convert("RGB"))
    assert difference(sdtune.load_image(path), reference) == 0
    assert sdtune.verify_image(path)[:2] == (reference.shape[1], reference.shape[0])


RAW, XMP = "Raw profile type exif", "XML:com.adobe.xmp"


@pytest.mark.parametrize("kind", ["tEXt", "zTXt", "iTXt", "iTXt compressed"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_in_a_text_of_a_png(tmp_path: Path, kind: str, orientation: int) -> None:
    assert_turned(with_texts(tmp_path / "raw.png", (kind, RAW, raw_profile(exif_of(description="a photo", orientation=orientation)))),
                  orientation)
    for form in ('tiff:Orientation="{}"', "><tiff:Orientation>{}</tiff:Orientation"):
        assert_turned(with_texts(tmp_path / "xmp.png", (kind, XMP, xmp(orientation, form))), orientation)


def test_which_orientation_of_a_png_counts(tmp_path: Path) -> None:
    """eXIf before ImageMagick's text, and XMP only where neither says one."""
    path = tmp_path / "both.png"
    raw, other = ("zTXt", RAW, raw_profile(exif_of(orientation=6))), ("iTXt", XMP, xmp(8))
    assert_turned(with_texts(path, raw, other, exif=exif_of(orientation=3)), 3)
    assert_turned(with_texts(path, raw, other), 6)
    assert_turned(with_texts(path, raw, other, exif=exif_of(description="nothing of a turn")), 8)
    assert_turned(with_texts(path, other, ("tEXt", RAW, raw_profile(exif_of(orientation=1)))), 1)


@pytest.mark.parametrize("text", ["", "\nexif\n", "\nexif\n 4\nzz", "\nexif\n 4\n4", raw_profile(b"Exif\0\0II*\0" + b"\xff" * 40)])
def test_a_damaged_text_turns_nothing(tmp_path: Path, text: str) -> None:
    path = with_texts(tmp_path / "damaged.png", ("tEXt", RAW, text), ("tEXt", "comment", raw_profile(exif_of(orientation=6))))
    assert difference(sdtune.load_image(path), np.asarray(scene())) == 0


def test_a_text_of_a_png_that_is_too_long_turns_nothing(tmp_path: Path) -> None:
    """Compressed to a few kilobytes, as in a file that is meant to fill the memory."""
    path = with_texts(tmp_path / "bomb.png", ("zTXt", XMP, xmp(6) + " " * (2 << 20)))
    assert difference(sdtune.load_image(path), np.asarray(scene())) == 0

"""Images against Pillow: reading, turning, compositing, resizing and cropping, and what damaged files are told."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps, PngImagePlugin

import sdtune

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
PHOTOS = sorted((ROOT / "examples" / "backpack_dog").glob("*.jpg")) + sorted(SHARED.glob("dreambooth/*/0[0-2].jpg")) \
    + sorted(SHARED.glob("faces/astronaut.png"))
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
           "lanczos": Image.Resampling.LANCZOS}
ORIENTATION = 0x0112
# Decoders of one format may round colour conversions differently; resizing uses the same fixed-point arithmetic.
DECODE_MAX = 2
RESIZE_MEAN = 1 / 255
RESIZE_MAX = 1


def scene(width: int = 61, height: int = 43, seed: int = 0) -> Image.Image:
    """A smooth image without symmetry: every turn of it is another image, and JPEG keeps it."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    rng = np.random.default_rng(seed)
    waves = [np.sin(x / rng.uniform(4, 12) + y / rng.uniform(4, 12) + rng.uniform(0, 6)) for _ in range(3)]
    ramp = (x / width + 2 * y / height) / 3
    channels = [np.clip(80 + 60 * wave + 90 * ramp, 0, 255) for wave in waves]
    return Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))


def on_white(image: Image.Image) -> np.ndarray:
    """What a viewer shows of an image with alpha."""
    rgba = image.convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB"))


def difference(ours: np.ndarray, reference: np.ndarray) -> int:
    """The largest difference of two uint8 images."""
    assert ours.shape == reference.shape and ours.dtype == np.uint8
    return int(np.abs(ours.astype(np.int64) - reference).max())


def refused(path: Path) -> str:
    """The text of the DataError that reading raises, which names the file."""
    with pytest.raises(sdtune.DataError) as caught:
        sdtune.load_image(path)
    with pytest.raises(sdtune.DataError) as verified:
        sdtune.verify_image(path)
    assert str(verified.value) == str(caught.value) and path.name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("photo", PHOTOS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_photo_equals_pillow(photo: Path) -> None:
    reference = np.asarray(ImageOps.exif_transpose(Image.open(photo)).convert("RGB"))
    ours = sdtune.load_image(photo)
    assert difference(ours, reference) <= DECODE_MAX
    assert difference(ours, reference[:, ::-1]) > DECODE_MAX, "a mirrored photo must fail"
    assert sdtune.verify_image(photo)[:2] == (reference.shape[1], reference.shape[0])


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path: Path, suffix: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    path = tmp_path / f"turned.{suffix}"
    options = {"jpg": {"quality": 95}, "png": {}, "webp": {"lossless": True}}[suffix]
    scene().save(path, exif=exif, **options)
    stored = Image.open(path)
    assert stored.getexif()[ORIENTATION] == orientation
    reference = np.asarray(ImageOps.exif_transpose(stored).convert("RGB"))
    ours = sdtune.load_image(path)
    assert difference(ours, reference) <= DECODE_MAX
    if orientation > 1:
        untouched = np.asarray(stored.convert("RGB"))
        assert ours.shape != untouched.shape or difference(ours, untouched) > 20, "leaving the turn out must fail"


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P-clear", "RGB-clear", "L-clear", "WEBP"])
def test_alpha_is_laid_on_white(tmp_path: Path, mode: str) -> None:
    rgb = scene()
    alpha = Image.fromarray(np.tile(np.linspace(0, 255, rgb.width).astype(np.uint8), (rgb.height, 1)))
    path = tmp_path / "alpha.png"
    if mode == "RGBA":
        rgb.putalpha(alpha)
        rgb.save(path)
    elif mode == "LA":
        Image.merge("LA", (rgb.convert("L"), alpha)).save(path)
    elif mode == "P-clear":
        rgb.quantize(16).save(path, transparency=bytes(range(0, 256, 16)))
    elif mode == "RGB-clear":
        pixels = np.asarray(rgb).copy()
        pixels[5:20, 5:30] = (1, 2, 3)
        Image.fromarray(pixels).save(path, transparency=(1, 2, 3))
    elif mode == "L-clear":
        pixels = np.asarray(rgb.convert("L")).copy()
        pixels[5:20, 5:30] = 7
        Image.fromarray(pixels).save(path, transparency=7)
    else:
        path = tmp_path / "alpha.webp"
        rgb.putalpha(alpha)
        rgb.save(path, lossless=True, exact=True)
    ours = sdtune.load_image(path)
    assert difference(ours, on_white(Image.open(path))) <= DECODE_MAX
    hidden = np.asarray(Image.open(path).convert("RGBA"))[..., :3]
    assert difference(ours, hidden) > 20, "showing the hidden colours must fail"


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "L-jpg", "L-webp", "interlaced"])
def test_mode_equals_pillows_rgb(tmp_path: Path, mode: str) -> None:
    image = scene()
    path = tmp_path / ("picture.jpg" if mode in ("CMYK", "L-jpg") else "picture.webp" if mode == "L-webp"
                       else "picture.png")
    converted = {"P": lambda: image.quantize(64), "interlaced": lambda: image, "L-jpg": lambda: image.convert("L"),
                 "L-webp": lambda: image.convert("L")}.get(mode, lambda: image.convert(mode))()
    converted.save(path)
    if mode == "interlaced":
        path.write_bytes(interlaced_png(np.asarray(image)))
    assert difference(sdtune.load_image(path), np.asarray(Image.open(path).convert("RGB"))) <= DECODE_MAX


def png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_file(header: tuple[int, int, int, int, int], rows: bytes, extra: bytes = b"") -> bytes:
    """A PNG from (width, height, bit depth, colour type, interlace) and its filtered rows."""
    width, height, depth, color, interlace = header
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)) \
        + extra + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")


def interlaced_png(pixels: np.ndarray) -> bytes:
    """Adam7, which Pillow reads and does not write."""
    rows = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = pixels[y0::dy, x0::dx]
        rows += b"".join(b"\0" + row.tobytes() for row in part if part.size)
    return png_file((pixels.shape[1], pixels.shape[0], 8, 2, 1), rows)


@pytest.mark.parametrize("color", [0, 2, 6], ids=["grey", "rgb", "rgba"])
def test_sixteen_bits_keep_the_high_byte(tmp_path: Path, color: int) -> None:
    channels = {0: 1, 2: 3, 6: 4}[color]
    values = np.random.default_rng(1).integers(0, 65536, (9, 13, channels), dtype=np.uint16)
    path = tmp_path / "deep.png"
    path.write_bytes(png_file((13, 9, 16, color, 0), b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)))
    ours = sdtune.load_image(path)
    if color == 0:  # Pillow's convert("RGB") clips 16-bit grey at 255: see image_read.h
        assert difference(ours, np.repeat((values >> 8).astype(np.uint8), 3, axis=2)) == 0
        assert difference(ours, np.asarray(Image.open(path).convert("RGB"))) > 100
    else:
        assert difference(ours, on_white(Image.open(path))) <= DECODE_MAX
        assert difference(ours, on_white(Image.fromarray((values & 255).astype(np.uint8).squeeze()))) > 100


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_few_bits_of_grey_with_a_clear_level(tmp_path: Path, depth: int) -> None:
    levels = np.random.default_rng(2).integers(0, 2**depth, (8, 16))
    bits = ((levels[..., None] >> np.arange(depth)[::-1]) & 1).reshape(8, -1).astype(np.uint8)
    rows = b"".join(b"\0" + np.packbits(row).tobytes() for row in bits)
    path = tmp_path / "small.png"
    path.write_bytes(png_file((16, 8, depth, 0, 0), rows, png_chunk(b"tRNS", struct.pack(">H", 0))))
    grey = (levels * (255 // (2**depth - 1))).astype(np.uint8)
    grey[levels == 0] = 255
    assert difference(sdtune.load_image(path), np.repeat(grey[..., None], 3, axis=2)) == 0


def test_profile_and_texts_do_not_disturb(tmp_path: Path) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("comment", "long " * 1000, zip=True)
    path = tmp_path / "noted.png"
    scene().save(path, pnginfo=info, icc_profile=b"not a profile", dpi=(300, 300), gamma=0.1)
    assert difference(sdtune.load_image(path), np.asarray(scene())) == 0


@pytest.mark.parametrize("suffix", ["jpg", "progressive.jpg", "png", "webp", "lossless.webp"])
def test_truncated_anywhere_is_an_error(tmp_path: Path, suffix: str) -> None:
    buffer = io.BytesIO()
    kind = suffix.split(".")[-1].replace("jpg", "jpeg")
    scene(120, 90).save(buffer, kind, progressive="progressive" in suffix, lossless="lossless" in suffix)
    whole = buffer.getvalue()
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(whole)
    assert sdtune.load_image(path).shape == (90, 120, 3)
    # A JPEG's last two bytes are the end mark: without one of them no pixel is missing, but libjpeg still warns.
    for size in sorted({int(size) for size in np.linspace(0, len(whole) - 1, 60)} | {len(whole) - 1, len(whole) - 2}):
        path.write_bytes(whole[:size])
        assert any(word in refused(path) for word in ("truncated", "damaged", "empty", "not an image"))


def test_truncated_photo_is_an_error(tmp_path: Path) -> None:
    whole = PHOTOS[0].read_bytes()
    path = tmp_path / "cut.jpg"
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
        path.write_bytes(whole[:int(len(whole) * share)])
        assert "truncated" in refused(path)


def test_flipped_bits_of_a_png_are_found(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    scene().save(buffer, "png")
    path = tmp_path / "flipped.png"
    for at in range(8, len(buffer.getvalue()), 97):
        content = bytearray(buffer.getvalue())
        content[at] ^= 16
        path.write_bytes(content)
        assert any(word in refused(path) for word in ("checksum", "truncated", "no chunk"))


def test_damaged_jpeg_is_an_error(tmp_path: Path) -> None:
    content = bytearray(PHOTOS[0].read_bytes())
    middle = len(content) // 2
    content[middle:middle + 64] = b"\xff\xd9" * 32
    path = tmp_path / "hole.jpg"
    path.write_bytes(content)
    assert "damaged" in refused(path)


def test_unknown_jfif_version_is_no_damage(tmp_path: Path) -> None:
    content = bytearray(saved("jpeg"))
    assert content[6:11] == b"JFIF\0"
    content[11] = 9
    path = tmp_path / "version9.jpg"
    path.write_bytes(content)
    assert difference(sdtune.load_image(path), np.asarray(Image.open(path))) <= DECODE_MAX


def test_wrong_suffix_is_read_by_content(tmp_path: Path) -> None:
    path = tmp_path / "really-a-png.jpg"
    scene().save(path, "png")
    assert difference(sdtune.load_image(path), np.asarray(scene())) == 0


def saved(kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    scene().save(buffer, kind, **options)
    return buffer.getvalue()


def test_foreign_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    frames = [scene(seed=1), scene(seed=2)]
    cases = {
        "GIF": saved("gif"), "BMP": saved("bmp"), "TIFF": saved("tiff"), "AVIF": b"\0\0\0\x20ftypavif" + bytes(20),
        "HEIC": b"\0\0\0\x18ftypheic" + bytes(16), "video": b"\0\0\0\x18ftypisom" + bytes(16),
        "animated WebP": saved("webp", save_all=True, append_images=frames),
        "animated PNG (3 frames)": saved("png", save_all=True, append_images=frames),
        "markup": b"<!DOCTYPE html><html>", "git-lfs": b"version https://git-lfs.github.com/spec/v1\n",
        "empty": b"", "not an image": b"hello, world",
    }
    path = tmp_path / "strange.jpg"
    for name, content in cases.items():
        path.write_bytes(content)
        text = refused(path)
        assert name in text
        assert "; " in text.split(name, 1)[1], "a way out is named"


def test_bombs_are_refused_before_decoding(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png_file((30000, 30000, 8, 2, 0), b"\0"))
    assert "too large" in refused(path) and "30000x30000" in refused(path)
    path.write_bytes(png_file((0, 5, 8, 2, 0), b"\0"))
    assert "no pixels" in refused(path)
    assert "no_such" in refused(tmp_path / "no_such.jpg")


@pytest.mark.parametrize("size", [(1, 1), (4000, 1), (1, 300)])
def test_extreme_shapes(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "thin.png"
    scene(*size).save(path)
    assert difference(sdtune.load_image(path), np.asarray(scene(*size))) == 0


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("size", [(64, 64), (17, 91), (233, 12), (61, 20), (30, 43), (1, 1), (61, 43)])
def test_resize_equals_pillow(name: str, size: tuple[int, int]) -> None:
    image = scene()
    ours = sdtune.resize_image(np.asarray(image), *size, resample=name)
    reference = np.asarray(image.resize(size, FILTERS[name]))
    assert difference(ours, reference) <= RESIZE_MAX
    assert np.abs(ours.astype(float) - reference).mean() <= RESIZE_MEAN


@pytest.mark.parametrize("photo", PHOTOS[:8] + PHOTOS[-1:], ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("name", ["bilinear", "lanczos"])
def test_photo_resize_equals_pillow_and_no_other_filter(photo: Path, name: str) -> None:
    image = Image.open(photo).convert("RGB")
    size = (96, 131)
    ours = sdtune.resize_image(np.asarray(image), *size, resample=name).astype(float)
    error = {other: np.abs(ours - np.asarray(image.resize(size, way))).mean() for other, way in FILTERS.items()}
    nearest = np.asarray(image.resize(size, Image.Resampling.NEAREST))
    assert error.pop(name) <= RESIZE_MEAN / 2
    assert min(error.values()) > RESIZE_MEAN / 4 and np.abs(ours - nearest).mean() > RESIZE_MEAN, \
        "another filter, and one without antialiasing, must fail"


@pytest.mark.parametrize("box", [(0, 0, 30, 43), (3.5, 2.25, 50.75, 40.5), (10, 11, 12, 13)])
def test_resize_of_a_box(box: tuple[float, float, float, float]) -> None:
    ours = sdtune.resize_image(np.asarray(scene()), 25, 31, resample="lanczos", box=box)
    assert difference(ours, np.asarray(scene().resize((25, 31), FILTERS["lanczos"], box))) <= RESIZE_MAX
    assert difference(ours, np.asarray(scene().resize((25, 31), FILTERS["lanczos"]))) > 5


def test_resize_refuses_nonsense() -> None:
    with pytest.raises(sdtune.DataError, match="beyond"):
        sdtune.resize_image(np.asarray(scene()), 5, 5, box=(0, 0, 62, 10))
    with pytest.raises(sdtune.ConfigError, match="bilinear, bicubic, lanczos"):
        sdtune.resize_image(np.asarray(scene()), 5, 5, resample="cubic")


@pytest.mark.parametrize("size", [(61, 43), (43, 61), (64, 64), (100, 33), (33, 100), (7, 200)])
@pytest.mark.parametrize("side", [32, 33, 64])
def test_crop_equals_torchvision(size: tuple[int, int], side: int) -> None:
    from torchvision import transforms
    image = scene(*size)
    steps = [transforms.Resize(side, transforms.InterpolationMode.LANCZOS), transforms.CenterCrop(side)]
    reference = np.asarray(transforms.Compose(steps)(image))
    assert difference(sdtune.crop_image(np.asarray(image), side), reference) <= RESIZE_MAX


def test_png_carries_its_texts_and_the_same_bytes(tmp_path: Path) -> None:
    texts = {"parameters": "a photo of sks person\nSteps: 30, Seed: 1", "Title": "Gr\u00fc\u00dfe \u732b"}
    pixels = np.asarray(scene())
    for name in ("a.png", "b.png"):
        sdtune.save_png(tmp_path / name, pixels, texts)
    image = Image.open(tmp_path / "a.png")
    assert {key: str(image.text[key]) for key in texts} == texts
    assert difference(np.asarray(image), pixels) == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"], "no temporary file stays"


def test_grid_places_each_image() -> None:
    images = [np.asarray(scene(20, 10, seed)) for seed in range(5)]
    sheet = sdtune.image_grid(images, columns=3, gap=2)
    assert sheet.shape == (2 + 2 * 12, 2 + 3 * 22, 3)
    for index, picture in enumerate(images):
        top, left = 2 + index // 3 * 12, 2 + index % 3 * 22
        assert difference(sheet[top:top + 10, left:left + 20], picture) == 0
    assert (sheet[14:24, 46:66] == 255).all()
    captioned = sdtune.image_grid(images, captions=["seed"] * 5)
    assert captioned.shape[0] > sheet.shape[0] and (captioned < 100).any()


WRONG_NUMBERS = {"floats": np.full((4, 6, 3), 0.5, np.float32), "above 255": np.full((4, 6, 3), 256),
                 "below 0": np.full((4, 6, 3), -1, np.int8), "a list of floats": [[[0.5, 0.5, 0.5]]], "texts": [[["a", "b", "c"]]]}


@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_numbers_that_are_no_pixels_are_refused(name: str, tmp_path: Path) -> None:
    """A conversion to uint8 would make 0 of 0.5 and of 256."""
    wrong, right = WRONG_NUMBERS[name], np.zeros((4, 6, 3), np.uint8)
    logs = sdtune.RunLogs(tmp_path / "run")
    calls = {"image": [lambda: sdtune.save_png(tmp_path / "a.png", wrong), lambda: sdtune.resize_image(wrong, 5, 5),
                       lambda: sdtune.crop_image(wrong, 4)],
             "images[1]": [lambda: sdtune.image_grid([right, wrong])],
             "pictures[1]": [lambda: logs.validation(1, [right, wrong], ["a", "b"], [0, 1])]}
    for argument, of_argument in calls.items():
        for call in of_argument:
            with pytest.raises(sdtune.ConfigError, match="allowed: uint8") as caught:
                call()
            assert caught.value.problems[0].where == argument and "255" in caught.value.problems[0].hint
    assert not (tmp_path / "a.png").exists()


def test_lists_bools_and_wider_whole_numbers_are_images(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) + 230
    for form in (pixels.tolist(), pixels.astype(np.int64), pixels.astype(np.uint16), pixels[:, ::-1].copy()[:, ::-1],
                 Image.fromarray(pixels)):
        sdtune.save_png(tmp_path / "a.png", form)
        assert (sdtune.load_image(tmp_path / "a.png") == pixels).all()
    sdtune.save_png(tmp_path / "b.png", pixels > 238)
    assert (sdtune.load_image(tmp_path / "b.png") == (pixels > 238)).all()

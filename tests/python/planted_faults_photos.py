"""Faults of photos, captions, masks and class images."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zlib

from PIL import Image
from planted_faults import Fault, Place, both, content, photo
from planted_faults_options import subject

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(width: int = 8, height: int = 8) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (64, 64), **options: object) -> bytes:
    """An image as Pillow writes it."""
    out = io.BytesIO()
    Image.effect_noise(size, 80).convert(mode).save(out, kind, **options)
    return out.getvalue()


def animated(kind: str) -> bytes:
    frames = [Image.new("RGB", (16, 16), color) for color in ("red", "green", "blue")]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:])
    return out.getvalue()


def riff(*chunks: tuple[bytes, bytes], size: int | None = None) -> bytes:
    """A WebP file of these chunks."""
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def webp_with_a_long_chunk() -> bytes:
    body = b"WEBP" + b"VP8 " + struct.pack("<I", 1000) + b"\0" * 16
    return b"RIFF" + struct.pack("<I", len(body)) + body


def noise_in_pixels() -> bytes:
    """A PNG whose compressed pixels are not zlib's."""
    return SIGNATURE + png_header() + chunk(b"IDAT", b"no zlib stream at all") + chunk(b"IEND", b"")


def jpeg_cut_in_its_pixels() -> bytes:
    """A JPEG whose scan ends in the middle."""
    data = encoded("JPEG", size=(256, 256))
    return data[:len(data) // 2]


HEIC = b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + b"\0" * 32
PNG, JPEG, WEBP = encoded("PNG"), encoded("JPEG"), encoded("WEBP")
LOSSLESS = encoded("WEBP", lossless=True)
PHOTOS: dict[str, Fault] = {
    "photo that is none": photo("none.jpg", b"no image"),
    "photo that is empty": photo("empty.jpg", b""),
    "photo of another format": photo("other.gif", encoded("GIF", "L")),
    "photo without pixels": photo("flat.png",
                                  SIGNATURE + png_header(0, 8) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")),
    "photo that is too large": photo("large.png",
                                     SIGNATURE + png_header(90000, 90000) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")),
    "photo that is a strip": photo("strip.png", encoded("PNG", size=(1, 1001))),
    "HEIC that is damaged": photo("damaged.heic", HEIC),
    "JPEG that ends in its header": photo("header.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF"),
    "JPEG without a marker": photo("marker.jpg", b"\xff\xd8\xff\xe0\x00\x04ab" + b"no marker here"),
    "JPEG with an empty segment": photo("segment.jpg", b"\xff\xd8\xff\xe0\x00\x01" + b"\0" * 8),
    "JPEG that ends in its pixels": photo("pixels.jpg", jpeg_cut_in_its_pixels()),
    "PNG without an end": photo("end.png", PNG[:-12]),
    "PNG that ends in a chunk": photo("cut.png", PNG[:len(PNG) // 2]),
    "PNG without a chunk": photo("chunk.png", SIGNATURE + b"\0\0\0\x01\1\2\3\4" + b"\0" * 16),
    "PNG with a wrong checksum": photo("sum.png", PNG[:40] + bytes([PNG[40] ^ 1]) + PNG[41:]),
    "PNG without a header": photo("first.png", SIGNATURE + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")),
    "PNG without pixels": photo("blank.png", SIGNATURE + png_header() + chunk(b"IEND", b"")),
    "PNG of wrong pixels": photo("zlib.png", noise_in_pixels()),
    "PNG that moves": photo("moving.png", animated("PNG")),
    "WebP that moves": photo("moving.webp", animated("WEBP")),
    "WebP that ends early": photo("early.webp", WEBP[:len(WEBP) // 2]),
    "WebP with a chunk that is too long": photo("long.webp", webp_with_a_long_chunk()),
    "WebP without an image": photo("blank.webp", riff((b"EXIF", b"\0" * 16))),
    "WebP without a start code": photo("code.webp", riff((b"VP8 ", b"\0" * 32))),
    "lossless WebP without a start mark": photo("mark.webp", riff((b"VP8L", b"\0" * 32))),
    "WebP of wrong pixels": photo("wrong.webp", LOSSLESS[:26] + b"\xff" * (len(LOSSLESS) - 26)),
    "caption that is not UTF-8": photo("reserved-000003-000.txt", b"caf\xe9"),
    "caption that is empty": photo("reserved-000003-001.txt", b" \n"),
    "caption that is too long": photo("reserved-000003-002.txt", "very " * 100),
    "metadata that is not JSON": photo("metadata.jsonl", "{"),
    "metadata without a file name": photo("metadata.jsonl", "{}"),
    "metadata with a number as text": photo("metadata.jsonl", json.dumps({"file_name": "a.png", "text": 5})),
    "metadata with a face of two numbers": photo("metadata.jsonl", json.dumps({"file_name": "a.png", "face": [1, 2]})),
    "metadata with an empty face": photo("metadata.jsonl", json.dumps({"file_name": "a.png", "face": [1, 2, 0, 4]})),
    "metadata that names a photo twice": photo("metadata.jsonl", '{"file_name": "a.png"}\n{"file_name": "a.png"}'),
}
# Those that can be in one folder together: all of them but the metadata, of which there is one file.
TOGETHER = [name for name in PHOTOS if not name.startswith("metadata")]


def no_photo(place: Place) -> list[str]:
    shutil.rmtree(place.photos)
    place.photos.mkdir()
    return []


def only_bad_photos(place: Place) -> list[str]:
    no_photo(place)
    place.write("me/x.jpg", b"no image")
    return ["--on-bad-image", "skip"]


def two_empty_folders(place: Place) -> list[str]:
    first, second = place.folder / "first", place.folder / "second"
    for folder in (first, second):
        folder.mkdir()
    return ["--images", "", "--concepts", json.dumps({"images": str(first)}), "--concepts", json.dumps({"images": str(second)})]


def metadata_folder(place: Place) -> list[str]:
    (place.photos / "metadata.jsonl").mkdir()
    return []


def large_caption(place: Place) -> list[str]:
    place.write("me/reserved-000003-000.txt", "word " * 20000)
    return []


def mask_of_another_size(place: Place) -> list[str]:
    name = sorted(path.stem for path in place.photos.glob("*.png"))[0]
    Image.new("L", (7, 5)).save(place.photos / f"{name}.mask.png")
    return ["--masked-loss"]


def mask_that_is_none(place: Place) -> list[str]:
    name = sorted(path.stem for path in place.photos.glob("*.png"))[0]
    place.write(f"me/{name}.mask.png", b"no image")
    return ["--masked-loss"]


def kohya_folder(place: Place) -> list[str]:
    """The photos in a subfolder, whose name is their prompt."""
    folder = place.photos / "10_ohwx man"
    folder.mkdir()
    for path in place.photos.glob("*.png"):
        path.rename(folder / path.name)
    return []


def class_images(name: str, data: bytes) -> Fault:
    """A file among the class images."""
    def plant(place: Place) -> list[str]:
        place.write("class/" + name, data)
        return ["--with-prior-preservation", "--class-data-dir", str(place.folder / "class")]
    return plant


def held_out(name: str, data: bytes) -> Fault:
    """A file among the photos that are held out."""
    def plant(place: Place) -> list[str]:
        place.write("held/" + name, data)
        return ["--validation-data-dir", str(place.folder / "held")]
    return plant


FOLDERS: dict[str, Fault] = {
    "no photo in the folder": no_photo,
    "only photos that cannot be read": only_bad_photos,
    "no photo of two subjects": two_empty_folders,
    "metadata is a folder": metadata_folder,
    "caption is too large a file": large_caption,
    "mask of another size": mask_of_another_size,
    "mask that is none": mask_that_is_none,
    "class image that is none": class_images("mine.png", b"no image"),
    "list of class images is a folder": class_images("manifest.json/file", b"x"),
    "class images in a folder of kohya's": class_images("1_person/mine.png", PNG),
    "held-out photo that is none": held_out("out.jpg", b"no image"),
    "held-out photo of a prompt that is not trained": both(kohya_folder, held_out("out.png", PNG)),
    "held-out photo of no subject": both(held_out("out.png", PNG), subject('{"images": "ME"}', '{"images": "ME"}')),
    "no held-out photo": held_out("notes.pdf", b"none"),
    "automatic caption of a camera photo": photo("camera.png", PNG, "--auto-caption-rate", "1"),
    "evaluation of camera photos": both(content("base/sdtune.json", '{"rendered_people": true}'), photo("camera.png", PNG),
                                        lambda place: ["--identity-steps", "1"]),
    "evaluation of words that no caption says": both(content("base/sdtune.json", '{"rendered_people": true}'), kohya_folder,
                                                     lambda place: ["--identity-steps", "1"]),
}


def all_photos(place: Place) -> list[str]:
    """Every fault that can be beside the others."""
    for name in TOGETHER:
        PHOTOS[name](place)
    return []

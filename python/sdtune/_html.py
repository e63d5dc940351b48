"""HTML and PNG that results show in a notebook: one piece, no script, small, and every text escaped."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ._errors import valid_text

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

SHEET_PIXELS = 200_000  # of all images of a sheet together: at most 600 kB, which noise would take
MOST_IMAGES = 24
LONGEST_TEXT = 300  # characters of one text that a user gave
SMALLEST_SIDE = 128  # px: smaller images are shown larger, with their pixels as squares


def text(value: object) -> str:
    """`value` as text that is safe between tags and inside an attribute's quotes, cut to LONGEST_TEXT characters."""
    words = valid_text(str(value))
    return html.escape(words if len(words) <= LONGEST_TEXT else words[: LONGEST_TEXT - 1] + "…", quote=True)


def pixels_of(image: Any) -> Pixels:
    """uint8 [H, W, 3] of a PIL image, a uint8 array, or floats [H, W, 3] in [0, 1]."""
    array: Pixels = np.asarray(image.convert("RGB") if hasattr(image, "convert") else image)
    if array.dtype == np.uint8:
        return array
    bytes_of_floats: Pixels = (np.clip(np.nan_to_num(array), 0, 1) * 255 + 0.5).astype(np.uint8)
    return bytes_of_floats


def png(image: Pixels) -> bytes:
    """The PNG file of uint8 [H, W, 3]."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
            + chunk(b"IEND", b""))


def shrunk(image: Pixels, most_pixels: int) -> Pixels:
    """The image, or means of its squares of whole pixels where it has more than `most_pixels`."""
    if image.shape[0] * image.shape[1] <= most_pixels:
        return image
    factor = np.sqrt(image.shape[0] * image.shape[1] / most_pixels)
    vertical = min(image.shape[0], int(np.ceil(factor)))
    horizontal = min(image.shape[1], int(np.ceil(max(factor, factor**2 / vertical))))
    vertical = int(np.ceil(max(vertical, factor**2 / horizontal)))
    height, width = image.shape[0] // vertical, image.shape[1] // horizontal
    part = image[: height * vertical, : width * horizontal]
    means = part.reshape(height, vertical, width, horizontal, 3).mean(axis=(1, 3))
    small: Pixels = (means + 0.5).astype(np.uint8)
    return small


def thumbnails(images: Sequence[Any]) -> list[Pixels]:
    """The first MOST_IMAGES, shrunk so that all of them have SHEET_PIXELS at most."""
    shown = images[:MOST_IMAGES]
    return [shrunk(pixels_of(image), SHEET_PIXELS // max(1, len(shown))) for image in shown]


def contact_sheet(images: Sequence[Any], gap: int = 4) -> Pixels:
    """uint8 [H, W, 3]: thumbnails side by side on white, about as many rows as columns."""
    small = thumbnails(images)
    columns = int(np.ceil(np.sqrt(len(small))))
    height, width = max(image.shape[0] for image in small) + gap, max(image.shape[1] for image in small) + gap
    sheet = np.full((height * -(-len(small) // columns) - gap, width * columns - gap, 3), 255, np.uint8)
    for index, image in enumerate(small):
        top, left = height * (index // columns), width * (index % columns)
        sheet[top: top + image.shape[0], left: left + image.shape[1]] = image
    return sheet


def figures(images: Sequence[Any], captions: Sequence[str]) -> str:
    """Thumbnails with a caption under each, as many in a row as fit."""
    parts = []
    for image, caption in zip(thumbnails(images), captions):
        side = max(SMALLEST_SIDE, image.shape[1])
        source = base64.b64encode(png(image)).decode()
        parts.append(f'<figure style="margin:0;width:{side}px"><img style="width:100%;image-rendering:'
                     f'{"pixelated" if side > image.shape[1] else "auto"}" alt="{text(caption)}" '
                     f'src="data:image/png;base64,{source}"><figcaption style="font-size:85%;overflow-wrap:anywhere">'
                     f'{text(caption)}</figcaption></figure>')
    more = f"<p>and {len(images) - MOST_IMAGES} more</p>" if len(images) > MOST_IMAGES else ""
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(parts)}</div>{more}'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts, left-aligned."""
    style = ' style="text-align:left"'
    head = "".join(f"<th{style}>{text(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td{style}>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def curve(label: str, xs: Sequence[float], ys: Sequence[float], size: tuple[int, int] = (300, 80)) -> str:
    """A line over its axis, with the range of both in words; thinned to one point a pixel. Empty without points."""
    points = [(x, y) for x, y in zip(xs, ys) if np.isfinite(y)]
    if not points:
        return ""
    points = points[:: max(1, len(points) // size[0])] + points[-1:]
    low, high = min(y for _, y in points), max(y for _, y in points)
    first, last = points[0][0], points[-1][0]
    line = " ".join(f"{size[0] * (x - first) / max(last - first, 1e-9):.0f},"
                    f"{size[1] - (size[1] - 4) * (y - low) / max(high - low, 1e-12) - 2:.1f}" for x, y in points)
    return (f'<figure style="margin:0;width:{size[0]}px"><svg width="{size[0]}" height="{size[1]}" role="img">'
            f'<polyline points="{line}" fill="none" stroke="#3b76c4" stroke-width="1.5"/>'
            f'<line x1="0" x2="{size[0]}" y1="{size[1]}" y2="{size[1]}" stroke="currentColor"/></svg>'
            f'<figcaption style="font-size:85%">{text(label)} {points[-1][1]:.4g} ({low:.4g} to {high:.4g}), '
            f"steps {first:.0f} to {last:.0f}</figcaption></figure>")

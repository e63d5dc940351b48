"""What doctor and prepare say of the photos, shown with the photos."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from . import _html, _native
from ._reports import Json, Report, path_or_none, problems_of, rows_table
from ._results import Problems

NARROWEST = 180  # px: what is said of a photo stands below it
WARNED, FINE = "#c98500", "#3a9a52"  # the bar above a photo: readable on light and dark
FaceBox = tuple[float, float, float, float]


@dataclass(frozen=True)
class PhotoFacts:
    """A photo that can be read: width and height in px, as seen after the EXIF turn; faces are (left, top, width, height) in px.

    sharpness is None where it was not examined; faces_searched is False where no detector looked at it.
    """

    file: Path
    width: int
    height: int
    orientation: int
    caption: str
    repeats: int
    sharpness: float | None
    faces_searched: bool
    faces: tuple[FaceBox, ...]

    @classmethod
    def _of(cls, printed: Json) -> Self:
        faces = tuple((float(box[0]), float(box[1]), float(box[2]), float(box[3])) for box in printed.get("faces", []))
        return cls(Path(printed["file"]), printed["width"], printed["height"], printed["orientation"], printed["caption"],
                   printed["repeats"], printed.get("sharpness"), printed.get("faces_searched", False), faces)


def is_about(fault: _native.Problem, file: Path) -> bool:
    """Whether a fault names this file, or a line of it."""
    return fault.where == str(file) or fault.where.startswith(f"{file}:")


def figure(photo: PhotoFacts, faults: Sequence[_native.Problem], most_pixels: int) -> str:
    """A photo with its name, its size, its caption and what is to be said of it."""
    try:
        image = _html.shrunk(_native.load_image(photo.file), most_pixels)
        side = max(NARROWEST, image.shape[1])
        shown = (f'<img style="width:100%" alt="{_html.text(photo.file.name)}" '
                 f'src="data:image/png;base64,{base64.b64encode(_html.png(image)).decode()}">')
    except _native.Error:
        side, shown = NARROWEST, "<p>the file is gone</p>"
    said = "".join(f"<br><b>{_html.text(fault.what)}</b>{': ' if fault.hint else ''}{_html.text(fault.hint)}" for fault in faults)
    return (f'<figure style="margin:0;width:{side}px;border-top:4px solid {WARNED if faults else FINE}">{shown}'
            f'<figcaption style="font-size:85%;overflow-wrap:anywhere">{_html.text(photo.file.name)}, '
            f"{photo.width} x {photo.height} px<br><i>{_html.text(photo.caption)}</i>{said}</figcaption></figure>")


@dataclass(frozen=True, repr=False)
class PhotoReport(Report):
    """What was found in the photos: problems are of files that are refused, warnings stop nothing, left_out are no photos."""

    photos: tuple[PhotoFacts, ...]
    problems: Problems
    warnings: Problems
    left_out: Problems
    notes: tuple[str, ...]
    contact_sheet: Path | None

    @classmethod
    def _of(cls, printed: Json) -> Self:
        return cls(printed, tuple(PhotoFacts._of(photo) for photo in printed["photos"]), problems_of(printed["problems"]),
                   problems_of(printed["warnings"]), problems_of(printed["left_out"]), tuple(printed["notes"]),
                   path_or_none(printed.get("contact_sheet")))

    @property
    def ok(self) -> bool:
        """False where a photo cannot be read; the command then exits with 2."""
        return not self.problems

    def warnings_of(self, photo: PhotoFacts) -> list[_native.Problem]:
        """Those that name this photo."""
        return [fault for fault in self.warnings if is_about(fault, photo.file)]

    def summary(self) -> str:
        """The counts, in a line."""
        photos, warnings = (f"{len(items)} {word}{'' if len(items) == 1 else 's'}"
                            for items, word in ((self.photos, "photo"), (self.warnings, "warning")))
        return f"{photos}, {warnings}, {len(self.problems)} refused"

    def __repr__(self) -> str:
        lines = [f"PhotoReport({self.summary()})"]
        lines += [f"  refused: {fault}" for fault in self.problems] + [f"  warning: {fault}" for fault in self.warnings]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """What is refused and why, then the photos: those with warnings first, at most MOST_IMAGES."""
        ordered = sorted(self.photos, key=lambda photo: not self.warnings_of(photo))
        shown = ordered[: _html.MOST_IMAGES]
        size = _html.SHEET_PIXELS // max(1, len(shown))
        figures = "".join(figure(photo, self.warnings_of(photo), size) for photo in shown)
        others = [fault for fault in self.warnings if not any(is_about(fault, photo.file) for photo in shown)]
        more = f"<p>and {len(ordered) - len(shown)} more</p>" if len(ordered) > len(shown) else ""
        return (f"<p>{_html.text(self.summary())}</p>"
                + rows_table(["refused", "why", "what to do"], [(fault.where, fault.what, fault.hint) for fault in self.problems])
                + f'<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div>{more}'
                + rows_table(["warning", "what", "what to do"], [(fault.where, fault.what, fault.hint) for fault in others])
                + rows_table(["left out", "why"], [(fault.where, fault.what) for fault in self.left_out])
                + rows_table(["note"], [(note,) for note in self.notes]))


@dataclass(frozen=True)
class PrepareReport(Report):
    """What prepare left for train: cache has the encoded images; notes say what an epoch consists of."""

    contact_sheet: Path
    cache: Path
    class_images: int
    notes: tuple[str, ...]
    photos: PhotoReport

    @classmethod
    def _of(cls, printed: Json) -> Self:
        return cls(printed, Path(printed["contact_sheet"]), Path(printed["cache"]), printed["class_images"],
                   tuple(printed["run_notes"]), PhotoReport._of(printed["photo_report"]))

    def _repr_html_(self) -> str:
        return super()._repr_html_() + rows_table(["note"], [(note,) for note in self.notes]) + self.photos._repr_html_()

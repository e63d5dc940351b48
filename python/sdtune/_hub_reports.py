"""The reports of fetch and push."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ._reports import Json, Report, rows_table


@dataclass(frozen=True)
class HubFile:
    """A file of a model on a hub. path: where it is in the cache, None of an upload; downloaded: False where it was there."""

    file: str
    bytes: int
    path: Path | None = None
    downloaded: bool = False


def file_table(files: tuple[HubFile, ...]) -> str:
    """A row a file."""
    return rows_table(["file", "MB"], [(file.file, f"{file.bytes / 1e6:.1f}") for file in files])


@dataclass(frozen=True)
class FetchReport(Report):
    """What fetch brought: path is the model's folder, or the file that was asked for; licence is None where the hub names none."""

    id: str
    revision: str
    commit: str
    licence: str | None
    paths: tuple[Path, ...]
    files: tuple[HubFile, ...]

    @classmethod
    def _of(cls, printed: Json) -> Self:
        files = tuple(HubFile(file["file"], file["bytes"], Path(file["path"]), file["downloaded"]) for file in printed["files"])
        return cls(printed, printed["id"], printed["revision"], printed["commit"], printed["licence"],
                   tuple(Path(path) for path in printed["paths"]), files)

    @property
    def path(self) -> Path:
        """The first of paths."""
        return self.paths[0]

    def _repr_html_(self) -> str:
        return super()._repr_html_() + rows_table(["path"], [(path,) for path in self.paths]) + file_table(self.files)


@dataclass(frozen=True)
class PushReport(Report):
    """What push uploaded, or would: uploaded is False of a dry run, which has no commit and no url. card: the model card, Markdown."""

    id: str
    revision: str
    uploaded: bool
    commit: str | None
    url: str | None
    files: tuple[HubFile, ...]
    card: str

    @classmethod
    def _of(cls, printed: Json) -> Self:
        files = tuple(HubFile(file["file"], file["bytes"]) for file in printed["files"])
        return cls(printed, printed["id"], printed["revision"], printed["uploaded"], printed["commit"], printed["url"], files,
                   printed["card"])

    def _repr_html_(self) -> str:
        return super()._repr_html_() + file_table(self.files)

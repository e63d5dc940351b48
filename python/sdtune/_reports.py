"""The reports of the program's commands as objects: what `--json` prints, typed, and shown in a notebook."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from . import _html, _native
from ._results import Problems

Json = dict[str, Any]
MOST_ROWS = 200  # of a table in a notebook


def path_or_none(value: str | None) -> Path | None:
    """The path that a report names."""
    return None if value is None else Path(value)


def problems_of(faults: Iterable[Json]) -> Problems:
    """A list of what is wrong, as the report has it."""
    return Problems([_native.Problem(fault["where"], fault["what"], fault["hint"]) for fault in faults])


def shown_image(path: Path, caption: str) -> str:
    """An image file as a thumbnail; nothing where it is gone or cannot be read."""
    try:
        return _html.figures([_native.load_image(path)], [caption])
    except _native.Error:
        return ""


def rows_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table, and how many rows it leaves out."""
    more = f"<p>and {len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    return _html.table(columns, rows[:MOST_ROWS]) + more if rows else ""


@dataclass(frozen=True)
class Report:
    """What a command of the program reports."""

    _printed: Json = field(repr=False, compare=False)

    def to_dict(self) -> Json:
        """The object that the command prints with --json."""
        return copy.deepcopy(self._printed)

    def _rows(self) -> list[tuple[str, object]]:
        """(field, value) of all fields but lists, which tables of their own show."""
        rows: list[tuple[str, object]] = []
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name != "_printed" and value is not None and not isinstance(value, (tuple, list, dict, Report)):
                rows.append((item.name, value))
        return rows

    def _repr_html_(self) -> str:
        return _html.table([type(self).__name__, ""], self._rows())


class Inspection(Json):
    """What inspect found: the dict of `sdtune inspect --json`, whose keys depend on its kind."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        super().__init__(found)

    @property
    def kind(self) -> str:
        """What the path is: "diffusers model folder", "run folder", "image folder", ..."""
        return str(self["kind"])

    def __repr__(self) -> str:
        return f"Inspection({self['path']!r}: {self.kind}; keys: {', '.join(self)})"

    def _repr_html_(self) -> str:
        plain = [(key, value) for key, value in self.items() if not isinstance(value, dict)]
        tables = [_html.table(["Inspection", ""], plain)]
        for key, value in self.items():
            if isinstance(value, dict):
                tables.append(rows_table([key, ""], list(value.items())))
        return "".join(tables)


@dataclass(frozen=True, repr=False)
class MachineCheck:
    """One thing that was examined; advice is "" where nothing is to be done."""

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    advice: str

    def __repr__(self) -> str:
        return f"{self.status:<4} {self.name}: {self.found}" + (f"; {self.advice}" if self.advice else "")


@dataclass(frozen=True, repr=False)
class MachineReport(Report):
    """What doctor(machine=True) found; to_dict() has GPUs, driver and libraries as well."""

    checks: tuple[MachineCheck, ...]
    device: str | None
    fault: str | None
    warning: str | None

    @classmethod
    def _of(cls, printed: Json) -> Self:
        checks = tuple(MachineCheck(check["name"], check["status"], check["found"], check["advice"] or "")
                       for check in printed["checks"])
        return cls(printed, checks, printed["device"], printed["fault"], printed["warning"])

    @property
    def ok(self) -> bool:
        """False where a run cannot work; the command then exits with 2."""
        return all(check.status != "fail" for check in self.checks)

    def __repr__(self) -> str:
        return "\n".join([f"MachineReport(device={self.device!r}, {'ok' if self.ok else 'a run cannot work'})",
                          *(f"  {check}" for check in self.checks)])

    def _repr_html_(self) -> str:
        rows = [(check.status, check.name, check.found, check.advice) for check in self.checks]
        return f"<p>device {_html.text(self.device)}</p>" + rows_table(["", "what", "found", "what to do"], rows)


@dataclass(frozen=True)
class RenderReport(Report):
    """What render wrote. images is less than planned where it was stopped; size in px."""

    output: Path
    labels: Path
    images: int
    planned: int
    size: int
    contact_sheet: Path | None
    seconds: float

    @classmethod
    def _of(cls, printed: Json) -> Self:
        return cls(printed, Path(printed["output"]), Path(printed["labels"]), printed["images"], printed["planned"],
                   printed["size"], path_or_none(printed["contact_sheet"]), printed["seconds"])

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (shown_image(self.contact_sheet, "contact sheet") if self.contact_sheet else "")


@dataclass(frozen=True)
class ConvertReport(Report):
    """What convert wrote. output is None of a dry run; what another kind of conversion has is None."""

    kind: Literal["model", "lora", "pickle"]
    output: Path | None
    model: Path | None
    lora: Path | None
    pickle: Path | None
    family: str | None
    prediction_type: str | None
    prediction_origin: str | None
    dtype: str | None
    naming: str | None
    tensors: int | None
    layers: int | None
    ignored: tuple[str, ...]

    @classmethod
    def _of(cls, printed: Json) -> Self:
        output, model, lora, pickle = (path_or_none(printed.get(name)) for name in ("output", "model", "lora", "pickle"))
        return cls(printed, printed["kind"], output, model, lora, pickle, printed.get("family"), printed.get("prediction_type"),
                   printed.get("prediction_origin"), printed.get("dtype"), printed.get("naming"), printed.get("tensors"),
                   printed.get("layers"), tuple(printed.get("ignored") or printed.get("left_out") or ()))


@dataclass(frozen=True)
class MergedLora:
    """A LoRA and the weight that it was merged with."""

    file: Path
    weight: float


@dataclass(frozen=True)
class MergeReport(Report):
    """What merge wrote; branches: layers that were changed."""

    output: Path
    model: str
    loras: tuple[MergedLora, ...]
    branches: int
    dtype: str

    @classmethod
    def _of(cls, printed: Json) -> Self:
        loras = tuple(MergedLora(Path(lora["file"]), lora["weight"]) for lora in printed["loras"])
        return cls(printed, Path(printed["output"]), printed["model"], loras, printed["branches"], printed["dtype"])

    def _repr_html_(self) -> str:
        return super()._repr_html_() + rows_table(["LoRA", "weight"], [(lora.file, lora.weight) for lora in self.loras])

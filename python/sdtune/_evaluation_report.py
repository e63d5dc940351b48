"""The report of evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from . import _html
from ._reports import Json, Report, path_or_none, shown_image


@dataclass(frozen=True)
class Estimate:
    """A figure with its confidence interval, and of how many images it is."""

    value: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}..{self.high:.3f})"


@dataclass(frozen=True, repr=False)
class EvaluationReport(Report):
    """What evaluate measured: rows["tuned"]["subject_fidelity"] and so on; docs/likeness.md says what the figures are."""

    model: Path
    base: Path
    images: Path | None
    output: Path
    subject: int
    seed: int
    rows: Mapping[str, Mapping[str, Estimate]]
    accepted_of_renders: float
    diversity_kept: float
    class_fidelity_kept: float

    @classmethod
    def _of(cls, printed: Json) -> Self:
        rows = {row: {name: Estimate(**figure) for name, figure in figures.items()} for row, figures in printed["rows"].items()}
        return cls(printed, Path(printed["model"]), Path(printed["base"]), path_or_none(printed["images"]), Path(printed["output"]),
                   printed["subject"], printed["seed"], rows, printed["accepted_of_renders"], printed["diversity_kept"],
                   printed["class_fidelity_kept"])

    @property
    def sheet(self) -> Path:
        """The references, the base's and the tuned model's images."""
        return self.output / "sheet.png"

    def _table(self) -> list[list[object]]:
        names = list(next(iter(self.rows.values())))
        return [[name, *(figures.get(name, "-") for figures in self.rows.values())] for name in names]

    def __repr__(self) -> str:
        lines = [f"EvaluationReport({str(self.model)!r}, subject {self.subject})",
                 "  " + "".join(f"{name:<24}" for name in ["", *self.rows])]
        lines += ["  " + "".join(f"{cell!s:<24}" for cell in row) for row in self._table()]
        kept = ("accepted_of_renders", "diversity_kept", "class_fidelity_kept")
        return "\n".join(line.rstrip() for line in [*lines, *(f"  {name:<24}{getattr(self, name):.3f}" for name in kept)])

    def _repr_html_(self) -> str:
        return (super()._repr_html_() + _html.table(["figure", *self.rows], self._table())
                + shown_image(self.sheet, "references, base, tuned model"))

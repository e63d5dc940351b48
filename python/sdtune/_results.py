"""What the calls of sdtune return, with how each shows itself in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import _html, _native
from ._errors import config_error

LARGEST_REPORT = 3 * 2**20  # bytes; a larger report.html is named in place of shown


class PipelineOutput:
    """What a pipeline returns: PIL images, float32 [B, H, W, 3] in [0, 1], or latents [B, C, h, w].

    `prompts` and `seeds` have an entry an image; a seed is None where the noise came from elsewhere.
    """

    def __init__(self, images: Any, prompts: Sequence[str] = (), seeds: Sequence[int | None] = ()) -> None:
        self._images, self._prompts, self._seeds = images, list(prompts), list(seeds)

    @property
    def images(self) -> Any:
        """PIL images, or an array; see output_type."""
        return self._images

    @property
    def prompts(self) -> list[str]:
        """The text of each image."""
        return self._prompts

    @property
    def seeds(self) -> list[int | None]:
        """The seed of each image; one for a whole batch stands at each. None: generators or latents were given."""
        return self._seeds

    def __getitem__(self, index: int) -> Any:
        if index != 0:
            raise IndexError("a pipeline returns images alone")
        return self._images

    def __len__(self) -> int:
        return 1  # as the tuple that diffusers returns

    def _shown(self) -> list[Any]:
        """The images; none of latents."""
        is_latent = isinstance(self._images, np.ndarray) and self._images.shape[-1] != 3
        return [] if self._images is None or is_latent else list(self._images)

    def _captions(self) -> list[str]:
        """`seed 3`; of a batch with one seed `seed 3, image 2 of 4`."""
        count, prompts = len(self._shown()), self._prompts
        captions = []
        for index in range(count):
            seed = self._seeds[index] if index < len(self._seeds) else None
            words = [] if seed is None else [f"seed {seed}"]
            if seed is None or self._seeds.count(seed) > 1:
                words.append(f"image {index + 1} of {count}")
            prompt = f": {prompts[index]}" if index < len(prompts) and len(set(prompts)) > 1 else ""
            captions.append(", ".join(words) + prompt)
        return captions

    def __repr__(self) -> str:
        if isinstance(self._images, np.ndarray):
            what = f"array {list(self._images.shape)}"
        else:
            what = "no images" if self._images is None else f"{len(self._images)} images"
            if self._images:
                first = self._images[0]
                width, height = first.size if hasattr(first, "convert") else first.shape[1::-1]  # PIL's, or an array [H, W, 3]
                what += f" of {width} x {height}"
        seeds = f", seeds={self._seeds}" if self._seeds else ""
        prompts = list(dict.fromkeys(self._prompts))
        prompt = f", prompt={prompts[0]!r}" if len(prompts) == 1 else (f", {len(prompts)} prompts" if prompts else "")
        return f"PipelineOutput({what}{seeds}{prompt})"

    def _repr_html_(self) -> str | None:
        if not self._shown():
            return None
        heading = f"<p>{_html.text(self._prompts[0])}</p>" if len(set(self._prompts)) == 1 else ""
        return heading + _html.figures(self._shown(), self._captions())

    def _repr_png_(self) -> bytes | None:
        return _html.png(_html.contact_sheet(self._shown())) if self._shown() else None


class Metrics(dict[str, Any]):
    """Columns over the optimizer steps, by the keys of metrics.jsonl: pandas.DataFrame(result.metrics) takes them as they are.

    Floats (NaN where a step has no such number), int64 for attempt, step and max_memory_bytes, bool for skipped. rows() gives a dict a
    step. Of a resumed run: its earlier attempts too, without the steps that were done again.
    """

    def __init__(self, rows: Sequence[dict[str, Any]] = ()) -> None:
        names = list(dict.fromkeys(name for row in rows for name in row)) or ["step", "loss"]
        super().__init__({name: column(name, [row.get(name) for row in rows]) for name in names})

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each step; None where a step has no such number."""
        lists = {name: values.tolist() for name, values in self.items()}
        return [{name: None if value != value else value for name, value in zip(lists, row)}
                for row in zip(*lists.values())]

    def __reduce__(self) -> tuple[Any, ...]:
        return Metrics, (self.rows(),)

    def __repr__(self) -> str:
        return f"Metrics({len(self['step'])} steps: {', '.join(self)})"

    def _repr_html_(self) -> str:
        steps = self["step"].tolist()
        curves = [_html.curve(name, steps, self[name].tolist()) for name in ("loss", "loss_prior", "lr", "grad_norm") if name in self]
        return f'<p>{len(steps)} steps</p><div style="display:flex;flex-wrap:wrap;gap:12px">{"".join(curves)}</div>'


def column(name: str, values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """[steps], with a type that depends on the name alone, unless lines of an older version lack it: float64 with NaN then."""
    kinds = {"attempt": np.int64, "step": np.int64, "max_memory_bytes": np.int64, "skipped": np.bool_}
    kind = np.float64 if None in values else kinds.get(name, np.float64)
    return np.array([np.nan if value is None else value for value in values], dtype=kind)


@dataclass(frozen=True)
class TrainResult:
    """What a finished or stopped run leaves. model_path is None where it was stopped; then `checkpoint` is what resuming takes."""

    output: Path
    model_path: Path | None
    checkpoint: Path | None
    step: int
    model_step: int
    metrics: Metrics = field(default_factory=Metrics, repr=False, compare=False)
    base: str = field(default="", repr=False)

    def pipeline(self, dtype: object = "float32", device: str = "auto") -> _native.StableDiffusionPipeline:
        """The tuned model, ready to generate: of a LoRA the base with the LoRA attached. Raises Error where the run was stopped."""
        if self.model_path is None:
            raise config_error(str(self.output), f"the run was stopped at step {self.step} and has no model yet",
                               "resume_from_checkpoint='latest' resumes it")
        return _native.StableDiffusionPipeline.from_pretrained(self.model_path, dtype=dtype, device=device)

    def _repr_html_(self) -> str:
        """The run's report in a frame of its own, which no script of it leaves; and what there is where it is too large."""
        rows = [("model", self.model_path or "none: the run was stopped"), ("run folder", self.output),
                ("checkpoint", self.checkpoint or "none"), ("optimizer steps", self.step),
                ("weights of step", self.model_step)]
        shown = _html.table(["TrainResult", ""], rows)
        try:
            path = self.output / "report.html"
            if path.stat().st_size > LARGEST_REPORT:
                return shown + f"<p>The report is {_html.text(path)}</p>"
            report = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return shown + self.metrics._repr_html_()
        return shown + (f'<iframe sandbox style="width:100%;height:480px;border:1px solid currentColor" title="report of the run" '
                        f'srcdoc="{html.escape(report, quote=True)}"></iframe>')


class Problems(list[_native.Problem]):
    """The faults that check found, as a list; empty when training would start."""

    def __repr__(self) -> str:
        return "\n".join(["no problems"] if not self else [f"{len(self)} problems", *(f"  {fault}" for fault in self)])

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no problems: training would start</p>"
        return _html.table(["where", "what is wrong", "what to do"], [(fault.where, fault.what, fault.hint) for fault in self])

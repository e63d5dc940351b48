"""The result of sdtune.plan: the dict of `sdtune plan --json`, which shows itself as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _html


def gigabytes(count: int | None) -> str:
    """GB of 10^9 bytes, as memory is sold."""
    return "" if count is None else f"{count / 1e9:.2f}"


def hours(value: float | None) -> str:
    """`0:33 min` or `1:20 h`."""
    if value is None:
        return ""
    seconds = round(value * 3600)
    return f"{seconds // 60}:{seconds % 60:02} min" if seconds < 3600 else f"{seconds // 3600}:{seconds // 60 % 60:02} h"


class Plan(dict[str, Any]):
    """What a run would take: memory by phase, work, and hours and price on the GPUs of a table."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        super().__init__(plan)

    def summary(self) -> str:
        """The run in a line."""
        run = self["run"]
        return (f"{run['method']} training of {run['trained_parameters']:,} parameters, {run['photos']} photos, "
                f"{run['total_steps']} steps of batch {run['batch']}, {run['resolution']} px, {run['optimizer']}")

    def memory_rows(self) -> list[tuple[str, str, str]]:
        """(phase, GB on a CPU, GB on a GPU), the largest marked."""
        on_gpu = {phase["name"]: phase["bytes"] for phase in self["gpu"]["phases"]}
        return [(phase["name"] + (" (the most)" if phase["name"] == self["gpu"]["peak_phase"] else ""),
                 gigabytes(phase["bytes"]), gigabytes(on_gpu.get(phase["name"]))) for phase in self["cpu"]["phases"]]

    def gpu_rows(self) -> list[tuple[str, str, str, str, str]]:
        """(GPU, its GB, time, how the time was found, price of the run)."""
        return [(gpu["name"], gigabytes(gpu["memory_bytes"]), hours(gpu.get("hours")) if gpu["fits"] else "does not fit",
                 str(gpu.get("hours_from", "")), "" if gpu.get("price") is None else f"{gpu['price']:.3f} {self['currency']}")
                for gpu in self["gpus"]]

    def __repr__(self) -> str:
        memory = (f"memory {gigabytes(self['cpu']['peak_bytes'])} GB on a CPU, {gigabytes(self['gpu']['peak_bytes'])} GB on a GPU")
        return f"Plan({self.summary()}; {memory}; keys: {', '.join(self)})"

    def _repr_html_(self) -> str:
        return (f"<p>{_html.text(self['run']['model'])}: {_html.text(self.summary())}</p>"
                + _html.table(["phase", "GB on a CPU", "GB on a GPU"], self.memory_rows())
                + _html.table(["GPU", "memory, GB", "time", "the time is", "price"], self.gpu_rows()))

"""A configuration for a run that goes on in the background: its paths in full, since the working directory may change meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import _calls, _native
from ._annotations import item_type

MADE_BY_RUN = ("output", "class_data_dir", "cache_dir")  # need not be there yet
WORDS = ("latest", "auto")  # of resume_from_checkpoint, whatever lies beside


def in_full(path: str, may_be_made: bool) -> str:
    """The path from the root on. What is neither there nor made by the run is a name, such as a hub id, or is said to be missing as it is."""
    if not path or path in WORDS or Path(path).is_absolute() or not (may_be_made or os.path.exists(path)):
        return path
    return str(Path.cwd() / path)


def concept_in_full(text: str) -> str:
    """An entry of concepts, which is JSON; one that is none is left to the run, which names it."""
    try:
        entry = json.loads(text)
    except ValueError:
        return text
    if not isinstance(entry, dict):
        return text
    for key, value in entry.items():
        name = key.replace("-", "_")
        if name in ("images", "instance_data_dir", "class_data_dir") and isinstance(value, str):
            entry[key] = in_full(value, name in MADE_BY_RUN)
    return json.dumps(entry, ensure_ascii=False)


def with_full_paths(config: Any) -> _native.TrainConfig:
    """A copy of a TrainConfig that means the same from any working directory. Origins stay what they are."""
    state = config.__getstate__()
    values = state["options"]
    if not values["output"]:
        values["output"] = str(_calls.core._run_folder(config))
        state["origins"]["output"] = "output"
    for option in config.options():
        name = option["name"]
        if item_type(option) == "PathText":
            values[name] = in_full(values[name], name in MADE_BY_RUN)
    values["concepts"] = [concept_in_full(text) for text in values["concepts"]]
    copied: Any = _native.TrainConfig.__new__(_native.TrainConfig)
    copied.__setstate__(state)
    own: _native.TrainConfig = copied
    return own

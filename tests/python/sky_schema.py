"""SkyPilot's JSON schemas, out of its package without the hundred packages that it needs to run."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock


class StandIns(MetaPathFinder, Loader):
    """Every module of sky that its schemas' module imports, as one that takes any call and lists nothing."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "sky" else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return mock.MagicMock(__path__=[], __spec__=spec)

    def exec_module(self, module: ModuleType) -> None:
        pass


class Names:
    """sky.skylet.constants: its functions ask the environment for some, and expect one of the clouds."""

    ALL_CLOUDS: list[str] = ["aws", "kubernetes"]
    STORAGE_ONLY_CLOUDS: list[str] = []
    OVERRIDEABLE_CONFIG_KEYS_IN_TASK: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> str:
        return name


def sky_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a task, and that of its `resources`."""
    found = importlib.util.find_spec("sky")
    assert found and found.submodule_search_locations, "scripts/setup.sh --tests installs skypilot"
    path = Path(found.submodule_search_locations[0]) / "utils" / "schemas.py"
    spec = importlib.util.spec_from_file_location("schemas_of_sky", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "meta_path", [StandIns(), *sys.meta_path]), mock.patch.dict(sys.modules):
        spec.loader.exec_module(module)
        module.constants = Names()
        return module.get_task_schema(), module.get_resources_schema()

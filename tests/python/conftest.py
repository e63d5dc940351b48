"""What all Python tests share: the tiny models, quiet oracles, and the rule that an oracle test may not be skipped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

# Before anything loads LibTorch: small models are slower with threads, and tests run beside others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")

# A shell starts background jobs with SIGINT ignored, and children inherit that: Ctrl-C could then not be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402

# Reasons that hold on a machine without files that are not part of the repository, or without the rights of a host's root.
ALLOWED_SKIPS = ("beside this checkout", "network namespaces are not permitted")


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With SDTUNE_NO_SKIP=1 (CI) a skipped test fails: an oracle that does not run proves nothing."""
    if report.skipped and os.environ.get("SDTUNE_NO_SKIP") == "1" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(allowed in reason for allowed in ALLOWED_SKIPS):
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped, and SDTUNE_NO_SKIP=1 allows none: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Generator[None, object, None]:
    outcome = yield
    fail_if_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, None]:
    """A file that is skipped while it is imported (importorskip) has no tests that could be reported."""
    outcome = yield
    fail_if_skipped(outcome.get_result())


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """tiny_folder("sd1" | "sd2" | "sdxl"): a diffusers folder, made once a session. Do not write into it."""
    made: dict[str, Path] = {}

    def folder_of(family: str) -> Path:
        from tiny_models import write_pipeline
        if family not in made:
            made[family] = write_pipeline(family, tmp_path_factory.mktemp("tiny") / family)
        return made[family]

    return folder_of


@pytest.fixture(scope="session")
def tiny_sd1(tiny_folder: Callable[[str], Path]) -> Path:
    """Stable Diffusion 1.x in small: epsilon, PNDM."""
    return tiny_folder("sd1")


@pytest.fixture(scope="session")
def tiny_sd2(tiny_folder: Callable[[str], Path]) -> Path:
    """Stable Diffusion 2.x in small: v-prediction, linear projections, "!" as padding."""
    return tiny_folder("sd2")


@pytest.fixture(scope="session")
def tiny_sdxl(tiny_folder: Callable[[str], Path]) -> Path:
    """SDXL in small: two text encoders, size conditioning."""
    return tiny_folder("sdxl")


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What scripts/make_tiny_base.py writes: 64 px, random weights, the real CLIP vocabulary."""
    folder = tmp_path_factory.mktemp("base") / "tiny-random"
    script = Path(__file__).resolve().parents[2] / "scripts" / "make_tiny_base.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True)
    return folder

"""`sdtune pretrain` on the GPU of which only the calls exist: devices and number formats of all stages fit together. Nothing is computed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from program import ROOT, run

sys.path.insert(0, str(ROOT / "scripts"))

from operators.product import Product, is_built  # noqa: E402

pytestmark = pytest.mark.skipif(not is_built(), reason="this build has no CUDA kernels: SDTUNE_CUDA=ON")
STAGES = {"nano": ["vae", "judge", "text", "base"], "portrait-128": ["features", "vae", "judge", "text", "base"]}
ADVERSARIAL = ["--vae-adversarial-start", "1", "--features-steps", "2", "--features-images", "64"]


@pytest.mark.parametrize("mixed_precision", ["no", "bf16"])
@pytest.mark.parametrize("design", STAGES)
def test_every_stage_runs(design: str, mixed_precision: str, tmp_path: Path) -> None:
    """The classifier's stages stopped in bf16, on a CPU as well: its images stayed float32."""
    product = Product(tmp_path / "gpu")
    words = ["pretrain", "--design", design, "--device", "cuda:0", "--mixed-precision", mixed_precision, "--output", str(tmp_path / "run"),
             "--num-images", "64", "--vae-steps", "2", "--vae-batch-size", "4", "--classifier-steps", "2", "--text-steps", "2",
             "--base-steps", "2", "--base-batch-size", "4", "--figure-images", "4", *(ADVERSARIAL if design == "portrait-128" else [])]
    ended = run(words, timeout=300, **product.environment)
    assert ended.returncode == 0, ended.stderr
    for stage in STAGES[design]:
        assert json.loads((tmp_path / "run" / stage / "metrics.jsonl").read_text().splitlines()[-1])["step"] == 2, stage
    assert (tmp_path / "run" / "model" / "model_index.json").is_file()

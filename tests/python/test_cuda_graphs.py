"""Training by CUDA graphs on the GPU of which only the calls exist: what is asked of it in a replayed step, and that the host never waits there.
What a graph computes is tested with stand-ins (tests/train/run/step_graphs_test.cpp), and on a card by `sdtune prove`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from program import ROOT, run

sys.path.insert(0, str(ROOT / "scripts"))

from operators.product import Product, is_built  # noqa: E402
from operators.record import Part  # noqa: E402

pytestmark = pytest.mark.skipif(not is_built(), reason="this build has no CUDA kernels: SDTUNE_CUDA=ON")
PHOTOS = ROOT / "examples" / "backpack_dog"
EAGER_STEPS = 3  # before a shape is captured


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return Product(tmp_path_factory.mktemp("graphs"))


def networks_calls(part: Part) -> dict[str, int]:
    """Convolutions, products and kernels of ours: what forward and backward pass consist of."""
    return {name: calls for name, (calls, _) in part.operators.items() if "convolution" in name or "mm" in name or name.startswith("sdtune::")}


@pytest.mark.parametrize("options", [{"train_text_encoder": False}, {"train_text_encoder": True, "dco_beta": 10.0}, {"train_text_encoder": True, "gradient_checkpointing": True}])
def test_a_replayed_step_is_the_eager_one(product: Product, tiny_sd1: Path, options: dict[str, object]) -> None:
    """And its host waits for nothing; in the step that captures it waits for the comparison."""
    plain = {"images": PHOTOS, "with_prior_preservation": False, "train_batch_size": 2, "micro_batch": 2, **options}
    eager = product.train(tiny_sd1, steps=6, **plain)
    graphed = product.train(tiny_sd1, steps=6, cuda_graphs=True, **plain)
    for step in range(EAGER_STEPS):
        assert networks_calls(graphed[f"step {step}"]) == networks_calls(eager[f"step {step}"])
    assert graphed[f"step {EAGER_STEPS}"].waits["item"] >= 1
    for step in (4, 5):
        assert networks_calls(graphed[f"step {step}"]) == networks_calls(eager[f"step {step}"])
        assert graphed[f"step {step}"].waits == eager[f"step {step}"].waits == {}


def test_a_run_by_graphs_ends_and_resumes(product: Product, tiny_sd1: Path, tmp_path: Path) -> None:
    """Also without them: the option may change."""
    words = ["train", "--images", str(PHOTOS), "--base", str(tiny_sd1), "--output", str(tmp_path / "run"), "--device", "cuda:0",
             "--with-prior-preservation=false", "--checkpointing-steps", "5"]
    ended = run([*words, "--max-train-steps", "6", "--cuda-graphs"], timeout=300, **product.environment)
    assert ended.returncode == 0, ended.stderr
    assert "cuda_graphs" not in ended.stderr
    ended = run([*words, "--max-train-steps", "8", "--resume-from-checkpoint", "latest"], timeout=300, **product.environment)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["attempt"] == 2] == [6, 7, 8]

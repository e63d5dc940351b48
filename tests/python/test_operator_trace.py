"""What the product asks of a GPU, counted on one of which only the calls exist: bars of scripts/operator_trace.py, mistakes that
must be found, and the counter itself beside torch. Nothing is computed, so nothing here says that a GPU gives right numbers."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import operator_trace  # noqa: E402
import recorded_memory  # noqa: E402
from operators.eager import run_eager  # noqa: E402
from operators.product import LIBRARY, Product, is_built  # noqa: E402
from operators.record import Part  # noqa: E402
from operators.sd15 import BUNDLED, write_sd15  # noqa: E402

pytestmark = pytest.mark.skipif(not is_built(), reason="this build has no CUDA kernels: SDTUNE_CUDA=ON")
SMALL = {"with_prior_preservation": False, "steps": 3}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return Product(tmp_path_factory.mktemp("trace"))


@pytest.fixture(scope="module")
def traced(product: Product) -> tuple:
    """Rows, the plain training, the sampling, and the variants, at full size."""
    rows, plain, sampled = operator_trace.trace_sd15(product, write_sd15(product.folder / "sd15"), run_eager(LIBRARY))
    return rows, plain, sampled, operator_trace.trace_variants(product)


def test_no_bar_is_missed(traced: tuple) -> None:
    """No wait, no layout copy in the UNet, at most 60 % of the operators of diffusers' own step."""
    assert operator_trace.faults(*traced) == []


def test_steps_are_alike_and_whole(traced: tuple) -> None:
    """A step is what the table calls it: 686 weights, one update, one loss copied to the host behind it."""
    rows, plain, _, _ = traced
    step = plain["step 1"]
    assert step.operators == plain["step 3"].operators
    assert step.copies_to_host == 1
    for kernel, calls in {"adamw": 1, "gradient_squares": 1, "geglu_forward": 16, "geglu_backward": 16, "group_norm_forward": 3 * 61,
                          "group_norm_backward": 3 * 61, "philox_normal": 2}.items():
        assert step.operators[f"sdtune::{kernel}"][0] == calls, kernel
    # Master, moments, gradient and weight of 859,520,964 numbers, in whole chunks.
    assert step.operators["sdtune::adamw"][1] == pytest.approx(859520964 * (24 + 2 + 2), rel=0.01)
    for name in ("aten::cudnn_convolution", "aten::convolution_backward", "aten::_scaled_dot_product_flash_attention"):
        assert step.operators[name][0] == rows[0].eager.operators[name][0], name


def test_the_committed_table_is_what_is_counted_now(traced: tuple) -> None:
    rows, _, _, variants = traced
    committed = json.loads(operator_trace.NUMBERS.read_text())
    assert [row["sdtune"]["operators"] for row in committed["rows"]] == [row.ours.count for row in rows]
    assert [row["diffusers"] and row["diffusers"]["operators"] for row in committed["rows"]] == [
        row.eager and row.eager.count for row in rows]
    assert {name: part["operators"] for name, part in committed["variants"].items()} == {
        name: part.count for name, part in variants.items()}


@pytest.mark.parametrize(("mistake", "waits"), [("wait", {"item": 1}), ("upload", {"copy from the host": 1}), ("layout", {})])
def test_a_planted_mistake_is_found(product: Product, mistake: str, waits: dict[str, int]) -> None:
    """A value read, memory uploaded that is not pinned, a weight in another layout than the maps: in step 2, not in step 1."""
    record = product.train(BUNDLED, **SMALL, plant=mistake)
    assert record["step 1"].waits == {} and record["step 1"].layouts == 0
    assert record["step 2"].waits == waits
    moved = set(record["step 2"].layout_copies)
    if mistake == "layout":
        assert any(what.startswith("cudnn_convolution") for what in moved)
        assert any(what.startswith("convolution_backward") for what in moved)
    else:
        assert moved == set()


@pytest.mark.parametrize(("shard", "sends"), [("none", {"nccl::all_reduce"}), ("optimizer", {"nccl::reduce", "nccl::broadcast"}),
                                              ("gradients", {"nccl::reduce", "nccl::broadcast"})])
def test_ranks_that_share_are_counted(product: Product, shard: str, sends: set[str]) -> None:
    """Which collectives a step asks of NCCL, and those of a checkpoint after step 1, which gathers the states of all."""
    record = product.train(BUNDLED, **SMALL, ranks=2, shard=shard, checkpointing_steps=1)
    step = {name for name in record["step 1"].operators if name.startswith("nccl::")}
    gathers = {"nccl::all_to_all"} if shard != "none" else set()
    assert sends | gathers <= step
    assert ("nccl::reduce" in step) == (shard != "none")


def planned(preset: str) -> int:
    """Bytes of the preset's highest phase, as configs/preset_memory.yaml has them, without what the plan assumes for the driver."""
    gib = float(re.search(rf"^{preset}: ([0-9.]+)$", (ROOT / "configs" / "preset_memory.yaml").read_text(), re.MULTILINE)[1])
    return int(gib * recorded_memory.GIB) - (900 << 20)


@pytest.mark.parametrize(("preset", "decisive", "plant"), [
    ("full_sd15_16gb.yaml", "training", ""), ("full_sd15_16gb.yaml", "training", "memory"), ("lora_sdxl.yaml", "generating class images", "")])
def test_a_preset_allocates_what_the_plan_says(product: Product, preset: str, decisive: str, plant: str) -> None:
    """The whole run at full size; the mutant keeps one copy of the UNet too many from step 2 on."""
    write_base = recorded_memory.CASES[preset].write_base
    base = product.folder / write_base.__name__.removeprefix("write_")
    recorded = recorded_memory.run_preset(product, preset, base if base.exists() else write_base(base), **({"plant": plant} if plant else {}))
    assert recorded[decisive] == recorded["the whole run"], "the phase that decides what fits"
    assert recorded_memory.Row(preset, "the whole run", planned(preset), recorded["the whole run"]).is_missed == bool(plant), recorded
    too_much = planned(preset) + recorded_memory.GIB  # as if the autoencoder decoded in float32
    assert recorded_memory.Row(preset, "the whole run", too_much, recorded["the whole run"]).is_missed or plant


def test_memory_that_a_refused_micro_batch_took_goes_back(product: Product) -> None:
    """micro_batch auto on a card that holds a step of two photos and not one of four: what LibTorch kept of the refused one, all of
    the card, would be missing where something else asks the driver for memory."""
    # With accumulation gradients have the same memory however a batch is split.
    options = {**SMALL, "train_batch_size": 4, "gradient_accumulation_steps": 2, "train_text_encoder": False}
    four, two = (product.train(BUNDLED, **options, micro_batch=count) for count in (4, 2))
    peaks = [max(part.peak_bytes for part in record.values()) for record in (two, four)]
    assert peaks[0] < peaks[1]
    full = copy.copy(product)
    full.environment = {**product.environment, "SDTUNE_RECORDED_MEMORY": str(sum(peaks) // 2)}
    full.folder = product.folder / "full"
    full.folder.mkdir()
    fitted = full.train(BUNDLED, **options, micro_batch="auto")
    assert fitted["step 1"].operators == two["step 1"].operators != four["step 1"].operators
    emptied = {name: part.operators["allocator::empty_cache"][0] for name, part in fitted.items()
               if "allocator::empty_cache" in part.operators}
    assert list(emptied.values()) == [1] and not any(name.startswith("step") for name in emptied), emptied


def test_memory_is_counted_as_tensors_come_and_go(counted: dict) -> None:
    """In blocks of 512 bytes; what is released is not live any more."""
    begin, kept, after = (Part(**counted["record"][name]) for name in ("memory: nothing", "memory: two, one kept", "memory: gone"))
    assert kept.live_bytes - begin.live_bytes == 1024
    assert kept.peak_bytes - begin.live_bytes == 1024 + 4096
    assert after.live_bytes == begin.live_bytes


def test_a_missed_bar_is_said(traced: tuple) -> None:
    """Each bar alone, by a figure that just misses it."""
    rows, plain, sampled, variants = copy.deepcopy(traced)
    variants["AdamW"].waits["item"] = 1
    rows[0].ours.operators["aten::add.Tensor"][0] += rows[0].eager.count
    sampled["denoising"].layout_copies["copy_ [2, 4, 64, 64]"] = [24, 1]
    said = "\n".join(operator_trace.faults(rows, plain, sampled, variants))
    assert "AdamW (bundled base): the host waits ({'item': 1})" in said
    assert "of eager's operators (allowed: 60%)" in said
    assert "`sample`, a sampling step with guidance, bf16: layout copies" in said


COUNTED = """
import json, sys
from operators.eager import Recorder
recorder = Recorder(sys.argv[1])
import torch
from torch.utils._python_dispatch import TorchDispatchMode

class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = {}
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name + ("." + function._overloadname if function._overloadname != "default" else "")
        self.names[name] = self.names.get(name, 0) + 1
        return function(*args, **(kwargs or {}))

def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4))

def step(model, x):
    torch.nn.functional.mse_loss(model(x), torch.zeros_like(model(x))).backward()

with Calls() as calls:
    step(network(), torch.ones(2, 8))
torch_names = calls.names
model, x = network().to("cuda"), torch.empty(2, 8, device="cuda")
recorder.begin("step")
step(model, x)

# Sizes and strides beside those of the CPU.
def shapes(device):
    image = torch.ones(2, 4, 6, 6, device=device, requires_grad=True)
    found = []
    for format in (torch.contiguous_format, torch.channels_last):
        conv = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1).to(device).to(memory_format=format)
        y = conv(image.to(memory_format=format))
        y.sum().backward()
        found += [y, conv.weight.grad, conv.bias.grad, image.grad]
    norm = torch.nn.GroupNorm(2, 4).to(device)
    norm(image).sum().backward()
    table = torch.nn.Embedding(10, 3).to(device)
    table(torch.ones(2, 5, dtype=torch.long, device=device)).sum().backward()
    q = torch.ones(2, 3, 5, 8, device=device, requires_grad=True)
    attended = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    attended.sum().backward()
    found += [norm.weight.grad, table.weight.grad, attended, q.grad, image.max(), image.index_select(1, torch.tensor([0, 2], device=device)),
              torch.where(image > 0, image, image[:1]), image.abs(), image[0].mT.contiguous(),
              torch.cat([image, image], 1), image.mean((1, 2)), image.to(torch.bfloat16), image.sum(1)]
    return [list(tensor.shape) for tensor in found] + [list(found[4].stride()), list(found[5].stride())]

on_cpu, on_gpu = shapes("cpu"), shapes("cuda")

def part(name, work):
    recorder.begin(name)
    work()

pinned = torch.ones(4).pin_memory("cuda")
y = torch.empty(2, 4, 6, 6, device="cuda")
part("item", lambda: y.sum().item())
part("nonzero", lambda: y.nonzero())
part("upload", lambda: torch.ones(4).to("cuda"))
part("pinned upload", lambda: pinned.to("cuda", non_blocking=True))
part("blocking pinned upload", lambda: pinned.to("cuda"))
part("download", lambda: y.cpu())
part("pinned download", lambda: pinned.copy_(y.flatten()[:4], non_blocking=True))
part("index on the host", lambda: y[torch.tensor([0, 1])])
part("layout", lambda: y.contiguous(memory_format=torch.channels_last))
part("copy", lambda: y.clone())
part("view", lambda: y.view(2, 144)[:, 1:].unsqueeze(0))
part("cast", lambda: y.to(torch.bfloat16))
recorder.begin("memory: nothing")
recorder.begin("memory: two, one kept")
kept, gone = torch.empty(600, dtype=torch.uint8, device="cuda"), torch.empty(4096, dtype=torch.uint8, device="cuda")
del gone
recorder.begin("memory: gone")
del kept
print(json.dumps({"torch": torch_names, "cpu": on_cpu, "gpu": on_gpu, "record": json.loads(recorder.json())}))
"""


@pytest.fixture(scope="module")
def counted() -> dict:
    """What the counter says of small programs."""
    done = subprocess.run([sys.executable, "-c", COUNTED, str(LIBRARY)], cwd=ROOT / "scripts", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_counter_counts_what_torch_dispatches(counted: dict) -> None:
    """Beside TorchDispatchMode, which sees the CPU's operators of the same program, views and allocations among them."""
    part = counted["record"]["step"]["operators"]
    for name in ("addmm", "mm", "native_layer_norm", "native_layer_norm_backward", "gelu", "gelu_backward", "mse_loss",
                 "mse_loss_backward"):
        assert part[f"aten::{name}"][0] == counted["torch"][f"aten::{name}"], name
    views = {"aten::t", "aten::view", "aten::expand", "aten::detach", "aten::empty.memory_format", "aten::as_strided"}
    assert not views & set(part)
    assert set(counted["torch"]) & views  # torch did call some


def test_results_have_the_shapes_of_the_cpu(counted: dict) -> None:
    assert counted["gpu"] == counted["cpu"]


@pytest.mark.parametrize(("what", "waits"), [
    ("item", {"item": 1}), ("nonzero", {"nonzero": 1}), ("upload", {"copy from the host": 1}), ("pinned upload", {}),
    ("blocking pinned upload", {"copy from the host": 1}), ("download", {"copy to the host": 1}), ("pinned download", {}),
    ("index on the host", {"upload of an argument": 1}), ("layout", {}), ("view", {})])
def test_every_kind_of_wait_is_counted(counted: dict, what: str, waits: dict[str, int]) -> None:
    assert counted["record"][what]["waits"] == waits


def test_a_layout_copy_is_no_plain_copy(counted: dict) -> None:
    parts = {name: Part(**part) for name, part in counted["record"].items()}
    assert parts["layout"].layout_copies == {"copy_ [2, 4, 6, 6]": [1, 2 * 4 * 288]}
    assert parts["copy"].layouts == 0 and parts["copy"].operators == {"aten::copy_": [1, 2 * 4 * 288]}
    assert parts["cast"].layouts == 0 and parts["cast"].operators == {"aten::copy_ (cast)": [1, 6 * 288]}
    assert parts["view"].operators == {}


def test_an_event_that_is_read_early_is_a_wait(product: Product) -> None:
    """A validation reads the numbers of the step before it, which no later launch has pushed out of the queue."""
    record = product.train(BUNDLED, **SMALL, validation_prompt="a", validation_steps=2, num_validation_images=1)
    assert record["step 1"].waits == {"event": 1}
    assert record["step 2"].waits == {}


@pytest.mark.parametrize("sampler", ["euler_a", "dpm++sde", "dpm++2m_sde", "unipc", "deis", "lcm", "heun", "pndm"])
def test_no_sampler_waits(product: Product, sampler: str) -> None:
    """Also those that draw noise at each step, or look back at several. The first step and the others are counted apart."""
    record = product.sample(BUNDLED, steps=6, sampler=sampler)
    assert record["before denoising"].waits == {} and record["denoising"].waits == {}
    assert record["after denoising"].waits == {"copy to the host": 1}
    assert record["denoising"].count > 1000


T4, L4 = "NVIDIA T4=7.5", "NVIDIA L4=8.9"


@pytest.mark.parametrize(("gpu", "dtype", "precision"), [(T4, "float16", "fp16"), (L4, "bfloat16", "bf16"),
                                                         ("NVIDIA A100=8.0", "bfloat16", "bf16")])
def test_auto_takes_the_number_format_of_the_card(product: Product, gpu: str, dtype: str, precision: str) -> None:
    """bf16 from compute capability 8.0; before that fp16, in training with loss scaling, which unscales and skips."""
    machine = product.with_gpus(gpu)
    assert f"preparation in {dtype}" in machine.sample(BUNDLED, dtype="auto", steps=2)
    trained = machine.train(BUNDLED, **SMALL, mixed_precision="auto")
    assert f"begun in {precision}" in trained
    given = machine.train(BUNDLED, **SMALL, mixed_precision=precision)
    assert trained[operator_trace.STEADY].operators == given[operator_trace.STEADY].operators


def test_a_chosen_gpu_is_the_threads_own(product: Product) -> None:
    """From then on LibTorch's "cuda" is that one, for whoever names no number."""
    two = product.with_gpus(f"{T4};{L4}")
    assert [two.device(word)["current"] for word in ("auto", "cuda", "cuda:0", "cuda:1")] == [0, 0, 0, 1]
    assert product.with_gpus(f"Tesla V100=7.0;{L4}").device("auto")["current"] == 1


def test_a_run_on_the_second_gpu_is_the_same_run(product: Product) -> None:
    """Every tensor and launch is on cuda:1: the recorded GPU refuses operands of two GPUs, as LibTorch does."""
    two = product.with_gpus(f"{L4};{L4}")
    first, second = (two.sample(BUNDLED, steps=3, device=device) for device in ("cuda:0", "cuda:1"))
    assert second["denoising"] == first["denoising"] and second["denoising"].count > 500
    trained = [two.train(BUNDLED, **SMALL, device=device)[operator_trace.STEADY] for device in ("cuda:0", "cuda:1")]
    assert trained[0] == trained[1]

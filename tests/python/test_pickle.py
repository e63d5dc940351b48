"""`sdtune convert --pickle`: what torch.save writes, beside torch.load(weights_only=True); and what must not be run."""

from __future__ import annotations

import collections
import io
import os
import pickle
import random
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from ldm_layout import ldm_tensors
from lora_files import load_pipeline
from program import run
from safetensors import safe_open
from safetensors.torch import load_file
from tiny_models import make_pipeline

Weights = dict[str, torch.Tensor]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool]
LAYOUTS = [*((dtype, 2) for dtype in DTYPES), (torch.float32, 4), (torch.bfloat16, 5)]


def convert(file: Path, *more: str) -> Weights:
    """The tensors of the safetensors file that is made of it."""
    output = file.with_suffix(".safetensors")
    done = run(["convert", "--pickle", str(file), "--output", str(output), *more])
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{output}\n" and "verified bit for bit" in done.stderr
    return load_file(output)


def refusal(file: Path, *more: str) -> str:
    """The one line with which it is refused; nothing is written."""
    output = file.with_suffix(".safetensors")
    done = run(["convert", "--pickle", str(file), "--output", str(output), *more])
    assert done.returncode == 2, (done.returncode, done.stderr)
    (line,) = done.stderr.splitlines()
    assert line.startswith("sdtune: error: ") and not output.exists()
    return line


def differences(ours: Weights, theirs: Weights) -> list[str]:
    """Names that one of them lacks, or whose dtype, shape or bits differ."""
    def same(name: str) -> bool:
        one, other = (tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in (ours[name], theirs[name]))
        return one.dtype == other.dtype and one.shape == other.shape and bool(
            torch.equal(one.flatten().view(torch.uint8), other.flatten().view(torch.uint8)))
    return sorted(set(ours) ^ set(theirs)) + [name for name in set(ours) & set(theirs) if not same(name)]


def random_tensor(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Any bits, NaN and infinity among them."""
    if dtype == torch.bool:
        return torch.rand(*shape) < 0.5
    count = int(np.prod(shape)) * dtype.itemsize
    return torch.randint(0, 256, (count,), dtype=torch.uint8).view(dtype).reshape(shape)


def layouts(dtype: torch.dtype) -> Weights:
    """Strided, shared, expanded and empty tensors."""
    base = random_tensor(dtype, 6, 5, 4)
    made = {"whole": base, "transposed": base.permute(2, 0, 1), "rows": base[1:3], "every_other": base[:, ::2, 1:],
            "one": base[0, 0, 0], "expanded": base[:1, :, :1].expand(3, 5, 7), "empty": base[:0], "again": base,
            "vector": random_tensor(dtype, 17), "diagonal": base[:4, :4, 0].diagonal()}
    if dtype.is_floating_point:
        made["channels_last"] = random_tensor(dtype, 2, 3, 4, 5).to(memory_format=torch.channels_last)
        made["parameter"] = torch.nn.Parameter(random_tensor(dtype, 3))
        made["no_gradient"] = torch.nn.Parameter(random_tensor(dtype, 3), requires_grad=False)
    return made


@pytest.mark.parametrize(("dtype", "protocol"), LAYOUTS, ids=str)
def test_every_layout_equals_torch_load(dtype: torch.dtype, protocol: int, tmp_path: Path) -> None:
    torch.manual_seed(protocol)
    file = tmp_path / "w.bin"
    torch.save(layouts(dtype), file, pickle_protocol=protocol)
    theirs = torch.load(file, weights_only=protocol == 2)  # which knows no later protocol
    ours = convert(file)
    assert differences(ours, theirs) == []
    # The same check does not hold for a swap or another stride.
    assert differences({**ours, "rows": ours["rows"].flip(0)}, theirs) == ["rows"]
    assert differences({**ours, "transposed": ours["whole"]}, theirs) == ["transposed"]


def test_hundreds_of_random_views_equal_torch_load(tmp_path: Path) -> None:
    torch.manual_seed(1)
    chance = random.Random(1)
    made = {}
    for storage in range(8):
        dtype = chance.choice(DTYPES)
        base = random_tensor(dtype, 400)
        for view in range(40):
            shape = [chance.randint(0, 4) for _ in range(chance.randint(0, 4))]
            stride = [chance.randint(0, 20) for _ in shape]
            made[f"{storage}.{view}"] = base.as_strided(shape, stride, chance.randint(0, 100))
    file = tmp_path / "views.pt"
    torch.save(collections.OrderedDict(made), file)
    assert differences(convert(file), torch.load(file, weights_only=True)) == []


def test_a_module_and_dtype_and_metadata(tmp_path: Path) -> None:
    """A state_dict has attributes of its own (_metadata); --dtype casts as torch does, floating tensors alone."""
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    file = tmp_path / "m.pt"
    torch.save(module.state_dict(), file)
    assert differences(convert(file), module.state_dict()) == []
    cast = convert(file, "--dtype", "float16", "--overwrite")
    assert differences(cast, {name: value.half() if value.is_floating_point() else value
                              for name, value in module.state_dict().items()}) == []
    with safe_open(file.with_suffix(".safetensors"), "pt") as opened:
        assert opened.metadata() == {"format": "pt"}


def test_numbers_too_large_for_the_format_are_refused(tmp_path: Path) -> None:
    """They would be infinite; what is infinite already stays so."""
    file = tmp_path / "m.pt"
    torch.save({"fits": torch.tensor([1.0, float("inf")]), "large": torch.tensor([1.0, -70000.0])}, file)
    for more in ([], ["--dry-run"]):
        assert "too large for float16 (large), which would become infinite" in refusal(file, "--dtype", "float16", *more)
    assert convert(file, "--dtype", "bfloat16")["large"][1] == -70144
    torch.save({"fits": torch.tensor([1.0, float("inf")])}, file)
    assert convert(file, "--dtype", "float16", "--overwrite")["fits"][1] == float("inf")


def test_what_lightning_keeps_beside_the_state_dict(tmp_path: Path) -> None:
    """Numbers, lists, sets, NumPy's scalars and a callback's class: read over. Only state_dict is written."""
    weights = layouts(torch.float32)
    file = tmp_path / "l.ckpt"
    ended = {"epoch": 3, "global_step": 10**12, "big": 10**30, "pytorch-lightning_version": "1.4.2", "loss": np.float64(0.5),
             "bytes": b"ab", "set": {1, 2}, "size": torch.Size([1, 2]), "dtype": torch.float16, "device": torch.device("cpu"),
             "counts": collections.defaultdict(dict, {"a": {}}), "none": None, "tuple": (1, 2.5, True, -7, "x"),
             "optimizer_states": [{"state": {0: {"exp_avg": torch.ones(3)}}}], "state_dict": weights}
    torch.save(ended, file)
    assert differences(convert(file), weights) == []
    output = tmp_path / "o.safetensors"
    done = run(["convert", "--pickle", str(file), "--pickle-key", "epoch", "--output", str(output)])
    assert done.returncode == 2 and "--pickle-key: state_dict" in done.stderr


def test_another_entry_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "e.pth"
    torch.save({"params": {"w": torch.zeros(2)}, "params_ema": {"w": torch.ones(2)}}, file)
    assert "--pickle-key: params, params_ema" in refusal(file)
    assert differences(convert(file, "--pickle-key", "params_ema"), {"w": torch.ones(2)}) == []


@pytest.mark.parametrize("options", [{}, {"_disable_byteorder_record": True}])
def test_files_of_other_pytorch_versions(options: dict[str, bool], tmp_path: Path) -> None:
    """Without a record of byte order, as before 2.1; without checksums; aligned and not."""
    weights = layouts(torch.bfloat16)
    file = tmp_path / "w.pt"
    torch.save(weights, file, **options)
    assert differences(convert(file), weights) == []
    unaligned = tmp_path / "u.pt"
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(unaligned, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert differences(convert(unaligned), torch.load(unaligned, weights_only=True)) == []
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(weights, tmp_path / "c.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert differences(convert(tmp_path / "c.pt"), weights) == []


@pytest.mark.parametrize("family", ["sd1", "sdxl"])
def test_a_whole_checkpoint_becomes_a_folder(family: str, tmp_path: Path) -> None:
    """The same folder as from the same tensors in a safetensors file."""
    pipe = make_pipeline(family, tmp_path / "vocabulary")
    pipe.save_pretrained(tmp_path / "base")
    tensors = ldm_tensors(pipe, family)
    torch.save({"epoch": 1, "state_dict": tensors}, tmp_path / "m.ckpt")
    more = ["--config", str(tmp_path / "base")]
    done = run(["convert", "--pickle", str(tmp_path / "m.ckpt"), "--output", str(tmp_path / "folder"), *more])
    assert done.returncode == 0, done.stderr
    convert(tmp_path / "m.ckpt")
    done = run(["convert", "--model", str(tmp_path / "m.safetensors"), "--output", str(tmp_path / "other"), *more])
    assert done.returncode == 0, done.stderr
    files = sorted(path.relative_to(tmp_path / "other") for path in (tmp_path / "other").rglob("*") if path.is_file())
    assert len(files) > 8
    assert [path for path in files if (tmp_path / "folder" / path).read_bytes() != (tmp_path / "other" / path).read_bytes()] == []
    unet = load_file(tmp_path / "folder" / "unet" / "diffusion_pytorch_model.safetensors")
    assert differences(unet, pipe.unet.state_dict()) == []


def test_diffusers_bin_files_and_loras(tiny_sd1: Path, tmp_path: Path) -> None:
    """A folder that diffusers wrote without safetensors, mended part by part; a LoRA of .bin, as diffusers reads it."""
    pipe = load_pipeline(tiny_sd1)
    folder = tmp_path / "bin"
    pipe.save_pretrained(folder, safe_serialization=False)
    (binary,) = (folder / "unet").glob("*.bin")
    done = run(["inspect", str(folder)])
    assert "sdtune convert --pickle" in done.stdout + done.stderr
    weights = convert(binary)
    assert differences(weights, torch.load(binary, weights_only=True)) == []
    adapter = {f"unet.{name}": torch.randn(4, 4) for name in ("a.lora.down.weight", "a.lora.up.weight")}
    torch.save(adapter, tmp_path / "pytorch_lora_weights.bin")
    assert differences(convert(tmp_path / "pytorch_lora_weights.bin"), adapter) == []


class Runs:
    """What a pickle makes of this is a call."""

    def __init__(self, function: Callable[..., object], *words: object) -> None:
        self.call = function, words

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


class WithState:
    def __setstate__(self, state: object) -> None: ...


def planted(content: bytes, path: Path) -> Path:
    """A file of torch.save with this pickle."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", b"0" * 16)
    return path


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(("name", "makes"), {
    "system": lambda mark: Runs(os.system, f"touch {mark}"),
    "Popen": lambda mark: Runs(subprocess.Popen, ["touch", str(mark)]),
    "exec": lambda mark: Runs(exec, f"open({str(mark)!r}, 'w')"),
    "getattr": lambda mark: Runs(getattr, os, "system"),
    "rmtree": lambda mark: Runs(shutil.rmtree, str(mark)),
    "torch.load": lambda mark: Runs(torch.load, str(mark)),
    "torch.hub.load": lambda mark: Runs(torch.hub.load, str(mark), "x"),
}.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_nothing_is_run(name: str, makes: Callable[[Path], Runs], protocol: int, tmp_path: Path) -> None:
    """Inside a right checkpoint, beside right tensors. Python's own reader would run it."""
    mark = tmp_path / "mark"
    file = tmp_path / "evil.ckpt"
    try:
        torch.save({"state_dict": {"w": torch.zeros(2)}, "hyper": makes(mark)}, file, pickle_protocol=protocol)
    except TypeError:  # a module as an argument cannot be pickled; its name can
        torch.save({"state_dict": {"w": torch.zeros(2)}, "hyper": Runs(getattr, "os", "system")}, file,
                   pickle_protocol=protocol)
    line = refusal(file)
    assert "which no tensor needs; nothing of it was run" in line and str(file) in line
    assert not mark.exists()


@pytest.mark.parametrize(("content", "says"), [
    (pickle.dumps({"a": WithState}, 2), "names test_pickle.WithState"),
    (b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.", "names posix.system"),
    (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "names posix.system"),
    (b"\x80\x02ctorch\nSize\n}b.", "gives a state"),
    (b"\x80\x02(S'id'\nios\nsystem\n.", "opcode 0x53"),
    (b"\x80\x02cos\x1b]0;owned\x07\nsystem\n.", "os\\x1b]0;owned\\x07.system"),
    (b"\x80\x02X\xff\xff\xff\xffabc.", "cut off"),
    (b"\x80\x02]q\x01h\x01a.", "no mapping"),
    (b"\x80\x02" + b"(" * 1_000_000 + b".", "takes a value"),
    (b"\x80\x02" + b"]" * 1_000_000 + b"\x85" * 1_000_000 + b".", "no mapping"),
    (b"\x80\x02}" + b"2" * 1_000_000 + b".", "holds no tensors"),
], ids=range(11))
def test_hostile_pickles_end_with_one_line(content: bytes, says: str, tmp_path: Path) -> None:
    assert says in refusal(planted(content, tmp_path / "evil.pt"))


def test_damaged_archives_end_with_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.pt"
    torch.save(layouts(torch.float32), whole)
    content = whole.read_bytes()
    for cut in (3, 40, len(content) // 2, len(content) - 30, len(content) - 1):
        (tmp_path / "cut.pt").write_bytes(content[:cut])
        refusal(tmp_path / "cut.pt")
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "deflated.pt", "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert "is compressed" in refusal(tmp_path / "deflated.pt")
    at = content.rindex(b"PK\x01\x02")
    size = struct.unpack("<I", content[at + 24:at + 28])[0]
    (tmp_path / "size.pt").write_bytes(content[:at + 20] + struct.pack("<II", size + 99_999, size + 99_999) + content[at + 28:])
    assert "beyond the file's data" in refusal(tmp_path / "size.pt")


def test_old_files_and_other_formats_say_how_to_convert(tmp_path: Path) -> None:
    old = tmp_path / "old.pt"
    torch.save({"w": torch.zeros(2)}, old, _use_new_zipfile_serialization=False)
    line = refusal(old)
    assert "before PyTorch 1.6" in line and "torch.save(torch.load('FILE', weights_only=True), 'new.ckpt')" in line
    torch.save(torch.load(old, weights_only=True), tmp_path / "new.ckpt")  # what the line says
    assert differences(convert(tmp_path / "new.ckpt"), {"w": torch.zeros(2)}) == []
    scripted = tmp_path / "program.pt"
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), scripted)
    assert "TorchScript" in refusal(scripted)
    torch.save({"w": torch.zeros(2, dtype=torch.complex64)}, tmp_path / "complex.pt")
    assert "torch.ComplexFloatStorage" in refusal(tmp_path / "complex.pt")
    torch.save({"w": torch.zeros(2).to(torch.float8_e4m3fn)}, tmp_path / "float8.pt")
    assert "torch.float8_e4m3fn" in refusal(tmp_path / "float8.pt")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pt")
    assert "names torch.nn.modules.linear.Linear" in refusal(tmp_path / "module.pt")
    torch.save({"w": torch.zeros(1).expand(1 << 40)}, tmp_path / "wide.pt")
    assert "expanded" in refusal(tmp_path / "wide.pt")
    buffer = io.BytesIO()
    np.savez(buffer, w=np.zeros(2))
    (tmp_path / "numpy.npz").write_bytes(buffer.getvalue())
    assert "no data.pkl" in refusal(tmp_path / "numpy.npz")


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    file = tmp_path / "w.pt"
    torch.save({"w": torch.zeros(2)}, file)
    assert "--model: is given beside --pickle" in refusal(file, "--model", "x")
    assert "--tokenizer: applies to single files only" in refusal(file, "--tokenizer", "x")
    assert "--lora-naming: is of --lora, which is not given" in refusal(file, "--lora-naming", "diffusers")
    dry = run(["convert", "--pickle", str(file), "--output", str(tmp_path / "d.safetensors"), "--dry-run"])
    assert dry.returncode == 0 and "nothing is written" in dry.stderr and not (tmp_path / "d.safetensors").exists()
    convert(file)
    again = run(["convert", "--pickle", str(file), "--output", str(file.with_suffix(".safetensors"))])
    assert again.returncode == 2 and "--overwrite replaces it" in again.stderr

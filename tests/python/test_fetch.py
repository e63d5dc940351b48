"""`sdtune fetch` from a hub on loopback: what comes, where it lies, and every way in which it can go wrong."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hub_server import TOKEN, Hub, git_hash, serve
from program import SDTUNE, run

WEIGHTS = os.urandom(3_000_000)
LORA = {"README.md": b"# a LoRA", "me.safetensors": WEIGHTS, "other.bin": os.urandom(20_000), "a dir/ä b.txt": b"text"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve() as running:
        yield running


@pytest.fixture
def fetch(hub: Hub, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """fetch("org/name", "--file", "x", TOKEN="..."): one retry, its own cache."""
    def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": "", "HF_HUB_CACHE": "",
                    **environment}
        return run(["fetch", "--retries", "1", *words], **settings)
    return call


def folder_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def error_of(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """The one error line."""
    assert done.returncode == code, (done.returncode, done.stderr)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert done.stdout == ""
    return line


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a repository as large ones have them: variants, other frameworks, pickles, a whole file."""
    from tiny_models import write_pipeline
    folder = write_pipeline("sd1", tmp_path_factory.mktemp("fetch") / "sd1")
    files = folder_files(folder)
    files["unet/diffusion_pytorch_model.fp16.safetensors"] = os.urandom(12_000)
    files["vae/diffusion_pytorch_model.fp16-00001-of-00001.safetensors"] = os.urandom(12_000)
    files["vae/diffusion_pytorch_model.safetensors.index.fp16.json"] = b"{}"
    for name in ("unet/diffusion_pytorch_model.non_ema.safetensors", "unet/diffusion_pytorch_model.bin", "unet/diffusion_flax_model.msgpack",
                 "text_encoder/pytorch_model.bin", "text_encoder/model.onnx", "v1-5.safetensors", "v1-5.ckpt", "README.md",
                 "unet/deep/x.json", "safety_checker_old/config.json"):
        files[name] = os.urandom(100)
    files["LICENSE.md"] = b"a licence"
    return files


def is_needed(name: str) -> bool:
    """Of these files, those of a plain fetch."""
    left_out = (".bin", ".msgpack", ".onnx", ".ckpt", "README.md")
    return not (name.endswith(left_out) or "fp16" in name or "non_ema" in name
                or name in ("v1-5.safetensors", "unet/deep/x.json", "safety_checker_old/config.json"))


def test_a_pipeline_lies_where_diffusers_finds_it(hub: Hub, fetch: Callable, pipeline: dict[str, bytes], tmp_path: Path) -> None:
    model = hub.add("org/name", pipeline, card={"license": "creativeml-openrail-m"})
    done = fetch("org/name")
    assert done.returncode == 0, done.stderr
    snapshot = Path(done.stdout.strip())
    commit = model.refs["main"]
    root = tmp_path / "home" / "hub" / "models--org--name"
    assert snapshot == root / "snapshots" / commit and (root / "refs" / "main").read_text() == commit
    assert folder_files(snapshot) == {name: content for name, content in pipeline.items() if is_needed(name)}
    for path in snapshot.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            large = hub.is_large(path.name, content)
            assert path.is_symlink() and not os.readlink(path).startswith("/")
            assert path.resolve() == root / "blobs" / (hashlib.sha256(content).hexdigest() if large else git_hash(content))
    assert "licence  creativeml-openrail-m" in done.stderr and f"commit {commit}" in done.stderr
    # The real libraries find it without a network, ours does, and a second call downloads nothing.
    code = f"""
import torch
from diffusers import StableDiffusionPipeline
pipe = StableDiffusionPipeline.from_pretrained("org/name", local_files_only=True)
import numpy, sys
numpy.save({str(tmp_path / 'x.npy')!r}, pipe.unet.conv_in.weight.detach().numpy())"""
    settings = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", code], env=settings, check=True, timeout=120, capture_output=True)
    from safetensors.numpy import load
    weights = load(pipeline["unet/diffusion_pytorch_model.safetensors"])["conv_in.weight"]
    assert np.array_equal(np.load(tmp_path / "x.npy"), weights)
    seen = run(["inspect", str(snapshot)], HF_HOME=str(tmp_path / "home"))
    assert seen.returncode == 0, seen.stderr
    before = len(hub.requests)
    again = fetch("org/name")
    assert again.stdout == done.stdout and all(method == "HEAD" or path.startswith("/api/") for method, path, _ in hub.requests[before:])
    drawn = run(["sample", "--model", "org/name", "--prompt", "a", "--steps", "1", "--device", "cpu", "--output", str(tmp_path / "out")],
                HF_HOME=str(tmp_path / "home"), HF_HUB_CACHE="")
    assert drawn.returncode == 0, drawn.stderr


def test_huggingface_hub_sees_the_same_cache(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    """Its own scan finds no fault, and what it has downloaded is not downloaded again."""
    hub.add("org/lora", LORA)
    done = fetch("org/lora", "--file", "me.safetensors")
    code = """
from huggingface_hub import *
info = scan_cache_dir()
assert not info.warnings, info.warnings
(repo,) = info.repos
print(repo.repo_id, repo.size_on_disk, hf_hub_download("org/lora", "me.safetensors"))
hf_hub_download("org/lora", "other.bin")"""
    settings = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN,
                "HF_HUB_DISABLE_XET": "1"}
    seen = subprocess.run([sys.executable, "-c", code], env=settings, timeout=120, capture_output=True, text=True, check=False)
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout.split() == ["org/lora", str(len(WEIGHTS)), done.stdout.strip()]
    assert len(hub.asked("store:/large/")) == 2
    assert fetch("org/lora", "--file", "other.bin").returncode == 0
    assert len(hub.asked("store:/large/")) == 2


def test_one_file_of_a_branch_or_commit(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    model = hub.add("org/lora", LORA)
    first = model.refs["main"]
    second = model.commit({"me.safetensors": WEIGHTS[::-1]}, "refs/pr/1")
    plain = fetch("org/lora", "--file", "a dir/ä b.txt")
    assert Path(plain.stdout.strip()).read_bytes() == b"text"
    branch = fetch("org/lora", "--file", "me.safetensors", "--revision", "refs/pr/1", "--cache-dir", str(tmp_path / "other"))
    place = Path(branch.stdout.strip())
    assert place == tmp_path / "other" / "models--org--lora" / "snapshots" / second / "me.safetensors"
    assert place.read_bytes() == WEIGHTS[::-1]
    assert (tmp_path / "other/models--org--lora/refs/refs/pr/1").read_text() == second
    commit = fetch("org/lora", "--file", "me.safetensors", "--revision", first)
    assert Path(commit.stdout.strip()).read_bytes() == WEIGHTS
    assert "me.safetensors" in error_of(fetch("org/lora")) and "no model_index.json" in error_of(fetch("org/lora"))


def test_variants_and_components(hub: Hub, fetch: Callable, pipeline: dict[str, bytes], tmp_path: Path) -> None:
    hub.add("org/name", pipeline)
    half = fetch("org/name", "--variant", "fp16", "--without", "text_encoder", "--cache-dir", str(tmp_path / "half"))
    names = set(folder_files(Path(half.stdout.strip())))
    assert "unet/diffusion_pytorch_model.fp16.safetensors" in names and "unet/diffusion_pytorch_model.safetensors" not in names
    assert {"vae/diffusion_pytorch_model.fp16-00001-of-00001.safetensors", "vae/diffusion_pytorch_model.safetensors.index.fp16.json"} <= names
    assert not any(name.startswith("text_encoder/") for name in names)
    assert "--variant: org/name has no safetensors of this variant (got bf16)" in error_of(fetch("org/name", "--variant", "bf16"))
    assert "--without: is no component" in error_of(fetch("org/name", "--without", "unets"))
    pickled = {name: content for name, content in pipeline.items() if name != "text_encoder/model.safetensors"}
    hub.add("org/pickled", pickled)
    hub.add("org/half", {name: content for name, content in pipeline.items() if name != "unet/diffusion_pytorch_model.safetensors"})
    half_alone = "--variant: org/half has weights of unet only as variant fp16 or non_ema (got "
    assert half_alone + "none)" in error_of(fetch("org/half")), "no weights of the UNet would come"
    assert half_alone + "ema)" in error_of(fetch("org/half", "--variant", "ema"))
    assert fetch("org/half", "--variant", "fp16").returncode == 0
    line = error_of(fetch("org/pickled"))
    assert "text_encoder" in line and "pytorch_model.bin" in line and "sdtune convert --pickle" in line


def test_a_cut_connection_goes_on_where_it_was(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    """Within a call and in the next one; only what is missing is asked for."""
    hub.add("org/lora", LORA)
    hub.faults.cut = [1_000_000, 500_000]
    done = fetch("org/lora", "--file", "me.safetensors")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == WEIGHTS
    ranges = [headers.get("range") for _, _, headers in hub.asked("store:/large/")]
    assert ranges == [None, "bytes=1000000-", "bytes=1500000-"]
    other = str(tmp_path / "other")
    hub.faults.cut = [2_000_000, 0, 0]
    line = error_of(fetch("org/lora", "--file", "me.safetensors", "--cache-dir", other), 138)
    assert "org/lora: me.safetensors" in line and "the next call goes on there" in line
    (partial,) = (tmp_path / "other").rglob("*.incomplete")
    assert partial.read_bytes() == WEIGHTS[:2_000_000]
    hub.faults.cut = []
    before = len(hub.asked("store:/large/"))
    assert fetch("org/lora", "--file", "me.safetensors", "--cache-dir", other).returncode == 0
    ((_, _, headers),) = hub.asked("store:/large/")[before:]
    assert headers["range"] == "bytes=2000000-" and not list((tmp_path / "other").rglob("*.incomplete"))


def test_a_killed_download_goes_on(hub: Hub, tmp_path: Path) -> None:
    """Ctrl-C while bytes come: what came is kept."""
    hub.add("org/lora", LORA)
    hub.faults.cut = [700_000]
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0", "HF_HUB_CACHE": "", "HF_TOKEN": ""}
    import threading
    words = [str(SDTUNE), "fetch", "org/lora", "--file", "me.safetensors"]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not hub.asked("store:/large/"):
        time.sleep(0.02)
    hub.faults.hang = threading.Event()
    while len(hub.asked("store:/large/")) < 2:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 130)
    hub.faults.hang.set()
    hub.faults.hang = None
    done = run(words[1:], **environment)
    assert done.returncode == 0 and Path(done.stdout.strip()).read_bytes() == WEIGHTS
    assert hub.asked("store:/large/")[-1][2]["range"] == "bytes=700000-"


@pytest.mark.parametrize("fault", ["no_ranges", "other_range", "stale part", "416"])
def test_servers_and_parts_that_do_not_fit(hub: Hub, fetch: Callable, fault: str, tmp_path: Path) -> None:
    """No ranges: all of it anew. A part of other content, or too long: the hash finds it, and all comes anew."""
    hub.add("org/lora", LORA)
    hub.faults.no_ranges = fault == "no_ranges"
    hub.faults.other_range = fault == "other_range"
    blobs = tmp_path / "home" / "hub" / "models--org--lora" / "blobs"
    blobs.mkdir(parents=True)
    part = blobs / (hashlib.sha256(WEIGHTS).hexdigest() + ".incomplete")
    part.write_bytes({"stale part": b"z" * 1000, "416": b"z" * 4_000_000}.get(fault, WEIGHTS[:1000]))
    done = fetch("org/lora", "--file", "me.safetensors")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == WEIGHTS and not part.exists()


@pytest.mark.parametrize("name", ["me.safetensors", "README.md"])
def test_a_wrong_hash_is_refused(hub: Hub, fetch: Callable, name: str, tmp_path: Path) -> None:
    """Of a large file and of a small one; the name is not taken, and nothing wrong stays."""
    hub.add("org/lora", LORA)
    hub.faults.wrong = {name}
    line = error_of(fetch("org/lora", "--file", name))
    assert f"org/lora: {name}: has another hash than the hub says" in line
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file() and "locks" not in str(path)] == []


def test_sizes_that_do_not_fit(hub: Hub, fetch: Callable) -> None:
    hub.add("org/lora", LORA)
    hub.faults.more = b"more"
    assert "sends more than the 3000000 bytes" in error_of(fetch("org/lora", "--file", "me.safetensors"), 138)
    hub.faults.more = b""
    hub.faults.headers = {"ETag": '"unknown"'}
    assert "no size and hash to check it with" in error_of(fetch("org/lora", "--file", "README.md"))


def test_the_token_goes_to_the_hub_alone(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    """Not to the store to which the hub redirects; read from HF_TOKEN, its former name or the file of `hf auth login`."""
    hub.add("org/lora", LORA, private=True)
    assert "not on" in error_of(fetch("org/lora", "--file", "me.safetensors"))
    assert fetch("org/lora", "--file", "me.safetensors", HF_TOKEN=TOKEN).returncode == 0
    with_token = [headers.get("authorization") for _, path, headers in hub.requests if not path.startswith("store:")][-3:]
    assert with_token == [f"Bearer {TOKEN}"] * 3
    assert hub.asked("store:") and all("authorization" not in headers for _, _, headers in hub.asked("store:"))
    assert fetch("org/lora", "--file", "README.md", HUGGING_FACE_HUB_TOKEN=TOKEN).returncode == 0
    (tmp_path / "home" / "token").write_text(TOKEN + "\n")
    assert fetch("org/lora", "--file", "other.bin").returncode == 0
    assert fetch("org/lora", "--file", "other.bin", HOME=str(tmp_path), HF_HOME="~/home").returncode == 0
    assert not Path("~").exists()
    done = fetch("org/lora", "--file", "other.bin", HF_TOKEN="hf_expired")
    assert "HF_TOKEN: is refused" in error_of(done) and "expired" in error_of(done) and "hf_expired" not in done.stderr
    assert "space or control character" in error_of(fetch("org/lora", HF_TOKEN="a\nHost: b"))


@pytest.mark.parametrize(("words", "said"), [
    (["org/gated", "--file", "README.md"], "org/gated: is gated"),
    (["org/absent"], "org/absent: is not on"),
    (["org/lora", "--file", "absent.txt"], "absent.txt: is not in org/lora"),
    (["org/lora", "--revision", "absent"], "--revision: org/lora has none of this name (got absent)"),
    (["org/lora", "--revision", "../x"], "--revision: is no name"),
    (["org/lora", "--file", "../../etc/passwd"], "--file: is no file of a repository"),
    (["../lora"], "is no name of a model on a hub"),
    (["lora"], "is no name of a model on a hub"),
    (["org/lora", "--file", "x", "--variant", "fp16"], "--file: is given beside --variant"),
    ([], "fetch: takes one model (got 0)"),
], ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_what_is_not_there_is_one_line(hub: Hub, fetch: Callable, words: list[str], said: str) -> None:
    hub.add("org/lora", LORA)
    hub.add("org/gated", LORA, gated=True)
    assert said in error_of(fetch(*words, HF_TOKEN=TOKEN))


def test_offline_and_no_connection(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    hub.add("org/lora", LORA)
    assert "HF_HUB_OFFLINE: is set" in error_of(fetch("org/lora", HF_HUB_OFFLINE="1"))
    assert not hub.requests
    assert "127.0.0.1:9" in error_of(fetch("org/lora", HF_ENDPOINT="http://127.0.0.1:9"), 138)
    assert "no web address" in error_of(fetch("org/lora", HF_ENDPOINT="ftp://127.0.0.1"))
    assert "name and password" in error_of(fetch("org/lora", HF_ENDPOINT="http://a:b@127.0.0.1"))
    hub.faults.statuses = [503, 429]
    assert fetch("org/lora", "--file", "README.md", "--retries", "2").returncode == 0
    hub.faults.statuses = [500] * 10
    assert "status 500" in error_of(fetch("org/lora", "--file", "README.md"), 138)
    hub.faults.statuses = []
    hub.faults.store_statuses = [403]  # an address of the store that is no longer good
    assert fetch("org/lora", "--file", "me.safetensors").returncode == 0


@pytest.mark.parametrize("name", ["README.md", "me.safetensors"], ids=["hub", "store"])
def test_a_download_waits_as_long_as_the_server_says(hub: Hub, fetch: Callable, name: str) -> None:
    """One more try is allowed, and one that comes before the second is over is refused too. Without a Retry-After it comes after half."""
    hub.add("org/lora", LORA)
    hub.faults.limit = 1
    done = fetch("org/lora", "--file", name)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == LORA[name]


def test_a_server_that_falls_silent(hub: Hub, fetch: Callable) -> None:
    import threading
    hub.add("org/lora", LORA)
    hub.faults.hang = threading.Event()
    line = error_of(fetch("org/lora", "--file", "me.safetensors", "--retries", "0", HF_HUB_DOWNLOAD_TIMEOUT="1"), 138)
    assert "me.safetensors" in line


@pytest.mark.parametrize(("target", "said", "code"), [
    ("{hub}/org/lora/resolve/main/me.safetensors", "redirects more than", 2),
    ("file:///etc/passwd", "cannot be", 138),
    ("gopher://127.0.0.1/x", "", 2),
], ids=["loop", "file", "gopher"])
def test_redirects_that_lead_nowhere(hub: Hub, fetch: Callable, target: str, said: str, code: int) -> None:
    hub.add("org/lora", LORA)
    hub.faults.redirect = target.format(hub=hub.url)
    hub.faults.headers = {"X-Linked-Size": "5", "X-Linked-Etag": "0" * 64}
    done = fetch("org/lora", "--file", "me.safetensors")
    assert done.returncode in (2, 138) and len([line for line in done.stderr.splitlines() if "error" in line]) == 1, done.stderr


def test_a_full_disk_keeps_what_came(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    """The part is a link to the device that is always full."""
    hub.add("org/lora", LORA)
    blobs = tmp_path / "home" / "hub" / "models--org--lora" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / (hashlib.sha256(WEIGHTS).hexdigest() + ".incomplete")).symlink_to("/dev/full")
    line = error_of(fetch("org/lora", "--file", "me.safetensors"), 5)
    assert "No space left on device" in line and "--cache-dir" in line
    hub.faults.headers = {"X-Linked-Size": str(1 << 49)}
    line = error_of(fetch("org/lora", "--file", "other.bin"), 5)
    assert "bytes left" in line and "--cache-dir" in line
    (tmp_path / "file").write_text("no folder")
    assert error_of(fetch("org/lora", "--file", "other.bin", "--cache-dir", str(tmp_path / "file")), 5)


def test_hostile_answers(hub: Hub, fetch: Callable, tmp_path: Path) -> None:
    """Names that leave the folder, texts that command a terminal."""
    hub.add("org/evil", {"../../../escape": b"x", "model_index.json": b"{}"})
    assert "lists a file outside the model's folder" in error_of(fetch("org/evil"))
    hub.add("org/index", {"model_index.json": b"[1]"})
    assert "must be an object" in error_of(fetch("org/index"))
    hub.add("org/words", LORA, card={"license": "a\x1b]0;owned\x07"})
    done = fetch("org/words", "--file", "README.md")
    assert done.returncode == 0 and "\x1b" not in done.stderr and "a\\x1b]0;owned\\x07" in done.stderr
    assert not (tmp_path / "escape").exists()


def test_many_processes_at_once(hub: Hub, tmp_path: Path) -> None:
    """One downloads, the others wait for it; links and references are made by one after the other."""
    hub.add("org/lora", LORA)
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0", "HF_HUB_CACHE": "", "HF_TOKEN": ""}
    words = [str(SDTUNE), "fetch", "org/lora", "--file", "me.safetensors"]
    processes = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    ends = [process.communicate(timeout=60) for process in processes]
    said = [printed for printed, _ in ends]
    assert [process.returncode for process in processes] == [0] * 8, [errors for _, errors in ends]
    assert len(set(said)) == 1
    assert Path(said[0].strip()).read_bytes() == WEIGHTS and len(hub.asked("store:/large/")) == 1


def test_a_base_that_is_not_there_says_how_to_fetch_it(tmp_path: Path) -> None:
    done = run(["sample", "--model", "org/name", "--prompt", "a"], HF_HOME=str(tmp_path), HF_HUB_CACHE="")
    assert done.returncode == 2 and "sdtune fetch org/name" in done.stderr

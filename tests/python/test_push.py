"""`sdtune push` to a hub on loopback: what arrives, what the model card says, and what is refused before anything is uploaded."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import yaml
from hub_server import TOKEN, Hub, serve
from program import run
from safetensors.torch import save_file

CONFIG = """# Run
base: stable-diffusion-v1-5/stable-diffusion-v1-5  # base
output: /home/user1/runs/me  # output
method: full  # default
seed: 7  # default
max_train_steps: 60  # max_train_steps
learning_rate: 2.0e-06  # default
images: /home/user1/private photos  # images
instance_prompt: a photo of sks person  # default
validation_prompt: null  # default
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve() as running:
        yield running


@pytest.fixture
def full_run(tiny_sd1: Path, tmp_path: Path) -> Path:
    """A finished run of the method full."""
    folder = tmp_path / "runs" / "me"
    shutil.copytree(tiny_sd1, folder / "model")
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "contact_sheet.png").write_bytes(b"photos")
    for step in ("00000020", "00000060"):
        (folder / "samples" / f"step-{step}").mkdir(parents=True)
        (folder / "samples" / f"step-{step}" / "grid.png").write_bytes(b"\x89PNG" + os.urandom(20_000))
    (folder / "model" / "sdtune.json").write_text(json.dumps({"trigger": "sks person", "rendered_people": False}))
    (folder / "model" / ".hidden").write_text("x")
    return folder


@pytest.fixture
def lora_run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "lora"
    (folder / "model").mkdir(parents=True)
    save_file({"unet.a.lora_A.weight": torch.randn(64, 64)}, folder / "model" / "pytorch_lora_weights.safetensors")
    (folder / "model" / "sdtune.json").write_text(json.dumps({"trigger": "sks dog", "base": "/home/user1/models/sd15"}))
    return folder


@pytest.fixture
def push(hub: Hub, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN, **environment}
        return run(["push", "--retries", "1", *words], **settings)
    return call


def pushed(hub: Hub, name: str) -> dict[str, bytes]:
    model = hub.models[name]
    return {path: content for path, content in model.commits[model.refs["main"]].items() if path != ".gitattributes"}


def error_of(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    assert done.returncode == code, (done.returncode, done.stderr)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("sdtune: error: ")]
    return line


def front_matter(card: str) -> dict[str, object]:
    return yaml.safe_load(card.split("---\n")[1])


@pytest.mark.parametrize("part_size", [0, 30_000])
def test_a_model_arrives_whole_with_its_card(hub: Hub, push: Callable, full_run: Path, part_size: int, tmp_path: Path) -> None:
    hub.faults.part_size = part_size
    done = push(str(full_run), "me/portrait", "--commit-message", "first try")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{hub.url}/me/portrait\n"
    model = hub.models["me/portrait"]
    assert model.private and model.messages[-1] == "first try" and bool(hub.parts) == bool(part_size)
    files = pushed(hub, "me/portrait")
    here = {path.relative_to(full_run / "model").as_posix(): path.read_bytes() for path in (full_run / "model").rglob("*") if path.is_file()}
    del here[".hidden"]
    assert json.loads(files.pop("sdtune.json")) == json.loads(here.pop("sdtune.json"))
    card = files.pop("README.md").decode()
    assert files.pop("images/sheet.png") == (full_run / "samples/step-00000060/grid.png").read_bytes()
    assert files == here
    data = front_matter(card)
    assert data["base_model"] == "stable-diffusion-v1-5/stable-diffusion-v1-5" and data["base_model_relation"] == "finetune"
    assert data["instance_prompt"] == "a photo of sks person" and data["library_name"] == "diffusers"
    assert "| learning_rate | 2.0e-06 |" in card and "| max_train_steps | 60 |" in card and "## Consent" in card
    assert "![Generated images](images/sheet.png)" in card and "`sks person`" in card
    everything = b"".join(pushed(hub, "me/portrait").values()) + done.stdout.encode()
    assert b"/home/user1" not in everything and b"private photos" not in everything, "folders of this machine stay here"
    # huggingface_hub reads the card, and a second push uploads no large file again.
    code = "import sys; from huggingface_hub import ModelCard; card = ModelCard(sys.stdin.read()); print(card.data.base_model)"
    seen = subprocess.run([sys.executable, "-c", code], input=card, capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "stable-diffusion-v1-5/stable-diffusion-v1-5"
    before = len(hub.asked("store:"))
    assert push(str(full_run), "me/portrait").returncode == 0 and len(hub.asked("store:")) == before
    assert all("authorization" not in headers for _, _, headers in hub.asked("store:"))
    back = run(["fetch", "me/portrait"], HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "h"), HF_HUB_CACHE="", HF_HUB_OFFLINE="0", HF_TOKEN=TOKEN)
    assert back.returncode == 0, back.stderr
    assert all((Path(back.stdout.strip()) / name).read_bytes() == here[name] for name in here if name.endswith(".safetensors"))


def test_the_lines_of_a_card_run_for_every_prompt(push: Callable, full_run: Path) -> None:
    prompt = 'a "painting" of $HOME, `id` and | back\\slash ' + "é" * 300
    config = yaml.safe_load(CONFIG) | {"instance_prompt": prompt}
    (full_run / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True, width=10_000))
    done = push(str(full_run), "me/portrait", "--dry-run")
    assert done.returncode == 0, done.stderr
    (python,) = [line for line in done.stdout.splitlines() if line.startswith("image = pipe(")]
    assert ast.literal_eval(python.removeprefix("image = pipe(").removesuffix(").images[0]")) == prompt
    (shell,) = [line for line in done.stdout.splitlines() if line.startswith("sdtune sample ")]
    program, *_, said = subprocess.run(["bash", "-c", f"printf '%s\\n' {shell}"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert program == "sdtune" and said == prompt
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| instance_prompt | ")]
    assert row.endswith("é... |") and "\\| back" in row, "cut between two letters"


def test_a_lora_says_whose_it_is(hub: Hub, push: Callable, lora_run: Path) -> None:
    done = push(str(lora_run), "me/lora", "--no-private")
    assert done.returncode == 0, done.stderr
    assert not hub.models["me/lora"].private
    files = pushed(hub, "me/lora")
    card = files["README.md"].decode()
    assert json.loads(files["sdtune.json"])["base"] == "sd15"
    assert "load_lora_weights(\"me/lora\")" in card and "lora" in front_matter(card)["tags"] and "base_model" not in front_matter(card)
    assert "/home/user1" not in card and "from `sd15`" in card
    assert "images/sheet.png" not in files


def test_a_card_of_ones_own_and_a_sheet(hub: Hub, push: Callable, full_run: Path, tmp_path: Path) -> None:
    (full_run / "model" / "README.md").write_text("mine")
    sheet = tmp_path / "s.png"
    sheet.write_bytes(b"\x89PNG")
    assert push(str(full_run), "me/a", "--sheet", str(sheet)).returncode == 0
    assert pushed(hub, "me/a")["README.md"] == b"mine" and pushed(hub, "me/a")["images/sheet.png"] == b"\x89PNG"
    assert push(str(full_run / "model"), "me/b", "--no-with-sheet").returncode == 0
    assert "images/sheet.png" not in pushed(hub, "me/b")


def test_a_dry_run_connects_to_nobody(hub: Hub, push: Callable, full_run: Path) -> None:
    done = push(str(full_run), "me/portrait", "--dry-run", HF_HUB_OFFLINE="1", HF_TOKEN="")
    assert done.returncode == 0 and done.stdout.startswith("---\n") and "## Consent" in done.stdout
    assert "unet/diffusion_pytorch_model.safetensors" in done.stderr and not hub.requests and not hub.models


def test_nothing_goes_to_a_public_model_by_accident(hub: Hub, push: Callable, full_run: Path) -> None:
    """One that was there, and one that the hub makes public although it was told otherwise."""
    hub.add("me/open", {"x": b"y"})
    assert "is public" in error_of(push(str(full_run), "me/open"))
    assert pushed(hub, "me/open") == {"x": b"y"} and not hub.large
    hub.faults.ignore_private = True
    assert "nothing was uploaded" in error_of(push(str(full_run), "me/new")) and pushed(hub, "me/new") == {}
    assert push(str(full_run), "me/open", "--no-private").returncode == 0


def test_a_token_of_one_model_need_not_make_models(hub: Hub, push: Callable, full_run: Path) -> None:
    """As huggingface_hub's create_repo(exist_ok=True): the hub refuses to make what is there already."""
    hub.add("others/shared", {"x": b"y"}, private=True)
    assert push(str(full_run), "others/shared").returncode == 0
    assert "unet/diffusion_pytorch_model.safetensors" in pushed(hub, "others/shared")
    hub.add("others/open", {"x": b"y"})
    assert "is public" in error_of(push(str(full_run), "others/open")) and pushed(hub, "others/open") == {"x": b"y"}


@pytest.mark.parametrize(("words", "environment", "said"), [
    (["me/x"], {"HF_TOKEN": "hf_expired"}, "HF_TOKEN: is refused"),
    (["me/x"], {"HF_TOKEN": ""}, "HF_TOKEN: is not set"),
    (["me/x"], {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE: is set"),
    (["others/x"], {}, "is not allowed to this token"),
    (["me/x", "--revision", "absent"], {}, "--revision: me/x has none of this name (got absent)"),
    (["nobody"], {}, "is no name of a model on a hub"),
    (["me/x", "more"], {}, "push: takes a run and a model's name"),
    (["me/x", "--sheet", "absent.png"], {}, "--sheet: is no file"),
], ids=lambda value: "-".join(value) if isinstance(value, list | dict) else "")
def test_what_is_refused_is_one_line(hub: Hub, push: Callable, full_run: Path, words: list[str], environment: dict[str, str],
                                     said: str) -> None:
    done = push(str(full_run), *words, **environment)
    assert said in error_of(done) and "hf_expired" not in done.stderr
    assert all(len(model.messages) == 1 for model in hub.models.values())


def test_names_that_are_not_utf8_are_refused_before_anything_is_made(hub: Hub, push: Callable, full_run: Path) -> None:
    """The commit is JSON, which cannot hold their bytes. A dry run says it too."""
    bad = os.fsdecode(b"caf\xe9")
    assert f"--commit-message: is not UTF-8 (got {bad})" in error_of(push(str(full_run), "me/x", "--commit-message", bad))
    assert f"--revision: is no name (got {bad})" in error_of(push(str(full_run), "me/x", "--revision", bad))
    (full_run / "model" / bad).write_text("x")
    for words in ([], ["--dry-run"]):
        assert f"model/{bad}: has a name that is not UTF-8" in error_of(push(str(full_run), "me/x", *words))
    assert not hub.requests and not hub.models
    (full_run / "model" / bad).rename(full_run / "model" / "café")
    assert push(str(full_run), "me/x", "--commit-message", "für alle").returncode == 0
    assert hub.models["me/x"].messages[-1] == "für alle" and pushed(hub, "me/x")["café"] == b"x"


def test_folders_that_hold_no_model(push: Callable, tmp_path: Path, full_run: Path) -> None:
    assert "there is no such folder" in error_of(push(str(tmp_path / "absent"), "me/x"))
    (tmp_path / "empty").mkdir()
    assert "has the run finished?" in error_of(push(str(tmp_path / "empty"), "me/x"))
    (full_run / "model" / "link.txt").symlink_to("/etc/hostname")
    assert "is a link that leaves the model's folder" in error_of(push(str(full_run), "me/x"))
    (full_run / "model" / "link.txt").unlink()
    (full_run / "model" / "vae").rename(tmp_path / "vae")
    (full_run / "model" / "vae").symlink_to(tmp_path / "vae")
    assert "vae: is a link to a folder" in error_of(push(str(full_run), "me/x")), "a model without its VAE"


def test_faults_that_pass_are_tried_again(hub: Hub, push: Callable, full_run: Path) -> None:
    hub.faults.statuses = [503, 200, 500]
    hub.faults.store_statuses = [500]
    done = push(str(full_run), "me/x")
    assert done.returncode == 0, done.stderr
    hub.faults.store_statuses = [500] * 20
    hub.large.clear()
    assert "status 500" in error_of(push(str(full_run), "me/y"), 138)
    assert pushed(hub, "me/y") == {}, "nothing is visible of an upload that did not end"
    hub.faults.store_statuses = []
    (full_run / "model" / "x.ignored").write_text("x")
    done = push(str(full_run), "me/y")
    assert done.returncode == 0 and "x.ignored" not in pushed(hub, "me/y") and "ignored  x.ignored" in done.stderr

"""The hub of hub_server.py is one: huggingface_hub's own client uploads to it, downloads from it, and is refused by it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, serve

FILES = {"model_index.json": b"{}", "unet/weights.safetensors": os.urandom(50_000), "a b.txt": b"text"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve() as running:
        yield running


def client(hub: Hub, code: str, tmp_path: Path, token: str = TOKEN) -> str:
    """Runs Python with huggingface_hub, which reads its settings when it is imported; returns what it prints."""
    settings = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": token, "HF_HUB_OFFLINE": "0",
                "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run([sys.executable, "-c", "from huggingface_hub import *\n" + code], env=settings, capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.parametrize("part_size", [0, 16_384])
def test_the_real_client_uploads_and_downloads(hub: Hub, part_size: int, tmp_path: Path) -> None:
    hub.faults.part_size = part_size
    for name, content in FILES.items():
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).write_bytes(content)
    client(hub, f"""
create_repo("org/name", private=True)
upload_folder(repo_id="org/name", folder_path={str(tmp_path / 'model')!r}, commit_message="hello")""", tmp_path)
    model = hub.models["org/name"]
    assert model.private and "hello" in model.messages
    assert {name: content for name, content in model.commits[model.refs["main"]].items() if name in FILES} == FILES
    assert bool(hub.parts) == bool(part_size)
    folder = Path(client(hub, 'print(snapshot_download("org/name"))', tmp_path))
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    assert hub.asked("store:/large/") and all("authorization" not in headers for _, _, headers in hub.asked("store:"))


def test_the_real_client_is_refused_by_name(hub: Hub, tmp_path: Path) -> None:
    hub.add("org/gated", FILES, gated=True)
    hub.add("org/open", FILES)
    code = """
from huggingface_hub.errors import *
for kind, words in ((GatedRepoError, ("org/gated", "a b.txt")), (RepositoryNotFoundError, ("org/absent", "x")),
                    (EntryNotFoundError, ("org/open", "x")), (RevisionNotFoundError, ("org/open", "a b.txt", "other"))):
    try:
        hf_hub_download(*words[:2], revision=words[2] if len(words) > 2 else None)
    except kind as error:
        print(type(error).__name__)
"""
    assert client(hub, code, tmp_path).split() == ["GatedRepoError", "RepositoryNotFoundError", "RemoteEntryNotFoundError",
                                                   "RevisionNotFoundError"]

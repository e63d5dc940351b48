"""fetch and push over TLS: a hub on loopback with a certificate of its own, as a mirror inside a company has it."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, serve
from program import run

FILES = {"README.md": b"# a LoRA", "pytorch_lora_weights.safetensors": os.urandom(300_000)}


def certificate(folder: Path, name: str, subject: str = "IP:127.0.0.1") -> Path:
    """A self-signed certificate with its key beside it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem"), "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName={subject}"], check=True, capture_output=True)
    return folder / f"{name}.pem"


def context(file: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(file, file.with_suffix(".key"))
    return made


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"), "own")


@pytest.fixture
def hub(authority: Path) -> Iterator[Hub]:
    with serve(context(authority)) as running:
        running.add("org/lora", FILES)
        yield running


def call(hub: Hub, tmp_path: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Without the machine's own settings of certificates."""
    return run(words, **{"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN,
                         "HF_HUB_CACHE": "", "SSL_CERT_FILE": "", "CURL_CA_BUNDLE": "", "REQUESTS_CA_BUNDLE": "", "https_proxy": "",
                         "HTTPS_PROXY": "", "ALL_PROXY": "", **environment})


def fetch(hub: Hub, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call(hub, tmp_path, ["fetch", "--retries", "1", "org/lora", "--file", "pytorch_lora_weights.safetensors"], **environment)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stderr)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("sdtune: error: ")]
    assert TOKEN not in done.stderr
    return line


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_the_network_s_own_certificate_is_taken(hub: Hub, authority: Path, variable: str, tmp_path: Path) -> None:
    """From the hub and, by its redirect, from its store."""
    done = fetch(hub, tmp_path, **{variable: str(authority)})
    assert done.returncode == 0, done.stderr
    assert hub.asked("store:") and Path(done.stdout.strip().splitlines()[-1]).exists()
    (blob,) = [path for path in (tmp_path / "home").rglob("blobs/*") if path.stat().st_size == 300_000]
    assert blob.read_bytes() == FILES["pytorch_lora_weights.safetensors"]


def test_push_is_encrypted_too(hub: Hub, authority: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    from safetensors.numpy import save_file
    import numpy as np
    save_file({"unet.a.lora_A.weight": np.ones((64, 64), np.float32)}, folder / "pytorch_lora_weights.safetensors")
    done = call(hub, tmp_path, ["push", str(folder), "someone/mine"], SSL_CERT_FILE=str(authority))
    assert done.returncode == 0, done.stderr
    model = hub.models["someone/mine"]
    assert model.private
    assert model.commits[model.refs["main"]]["pytorch_lora_weights.safetensors"] == (folder / "pytorch_lora_weights.safetensors").read_bytes()


def test_another_certificate_is_refused_and_sent_nothing(hub: Hub, tmp_path: Path) -> None:
    """The machine's own authorities, and one that has nothing to do with this hub."""
    other = certificate(tmp_path / "tls", "other")
    for environment in ({}, {"SSL_CERT_FILE": str(other)}):
        line = refusal(fetch(hub, tmp_path, **environment))
        assert f"{hub.url.removeprefix('https://')}: has no valid certificate" in line and "SSL_CERT_FILE" in line
    assert hub.requests == []


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    other = certificate(tmp_path / "tls", "elsewhere", "DNS:hub.example")
    with serve(context(other)) as hub:
        hub.add("org/lora", FILES)
        assert "has no valid certificate" in refusal(fetch(hub, tmp_path, SSL_CERT_FILE=str(other)))
        assert hub.requests == []


def test_a_redirect_to_an_open_connection_is_refused(hub: Hub, authority: Path, tmp_path: Path) -> None:
    """Nothing is asked of the address, though it holds the file."""
    with serve() as plain:
        plain.add("org/lora", FILES)
        hub.faults.redirect = f"{plain.url}/org/lora/resolve/main/pytorch_lora_weights.safetensors"
        hub.faults.headers = {"X-Linked-Size": "300000", "X-Linked-Etag": "0" * 64}
        line = refusal(fetch(hub, tmp_path, SSL_CERT_FILE=str(authority)))
        assert f"redirects to {plain.url.removeprefix('http://')} without encryption" in line
        assert plain.requests == []


def test_certificates_that_are_no_file_are_said(hub: Hub, tmp_path: Path) -> None:
    assert "SSL_CERT_FILE" in refusal(fetch(hub, tmp_path, SSL_CERT_FILE=str(tmp_path / "absent.pem")))

"""--notify against a server on this machine: what arrives, what a fault says, and that the address stands nowhere."""

from __future__ import annotations

import copy
import datetime
import json
import os
import pickle
import platform
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from program import SDTUNE, run
from test_ranks import environment, rank_pids, wait_for_steps
from training_reference import small_material

import sdtune

SECRET = "T0000/B0000/secretsecret"


class Hook(BaseHTTPRequestHandler):
    """Answers as the server says, and keeps what came."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((self.path, self.headers["Content-Type"], json.loads(content)))
        status = self.server.status
        if status == 0:
            time.sleep(25)
            return
        self.send_response(status)
        if status in (302, 307):
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.came.append((self.path, "GET", {}))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    hook.came, hook.status, hook.daemon_threads = [], 200, True
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    yield hook
    hook.shutdown()


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/services/{SECRET}"


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return small_material(tmp_path_factory.mktemp("notify"), photos=3)


def words(material: tuple[Path, Path], output: Path, *options: str) -> list[str]:
    base, photos = material
    return ["train", "--base", str(base), "--images", str(photos), "--output", str(output), "--device", "cpu", "--max-train-steps", "3",
            "--with-prior-preservation=false", "--train-text-encoder=false", "--report-to", "none", "--report-images", "0", *options]


def assert_no_secret(folder: Path, *texts: str) -> None:
    for text in texts:
        assert SECRET not in text
    for file in folder.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file


def test_start_and_end(material: tuple[Path, Path], server: ThreadingHTTPServer, tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", "--notify", address(server)))
    assert ended.returncode == 0 and "warning" not in ended.stderr, ended.stderr
    assert [(path, kind) for path, kind, _ in server.came] == [(f"/services/{SECRET}", "application/json")] * 2
    start, end = (event for _, _, event in server.came)
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert (start["event"], start["step"], start["total_steps"], start["loss"], start["exit_code"]) == ("start", 0, 3, None, None)
    assert (end["event"], end["step"], end["exit_code"], end["cause"]) == ("end", 3, 0, "all steps are done")
    assert end["loss"] == last["loss"] and end["loss"] != last["loss"] * 1.000001
    for event in (start, end):
        assert event["run"] == str(tmp_path / "run") and event["host"] == platform.node() and event["attempt"] == 1
        assert event["text"] == event["content"] and len(event["content"]) <= 2000  # Slack's and Discord's
        assert datetime.datetime.fromisoformat(event["started"]) <= datetime.datetime.fromisoformat(event["time"])
    assert end["text"] == (f"sdtune ended on {platform.node()}: {tmp_path / 'run'}, step 3 of 3, loss {last['loss']:.4f}, "
                           "all steps are done (exit code 0)")
    assert_no_secret(tmp_path, ended.stderr, ended.stdout)
    config = (tmp_path / "run" / "config.yaml").read_text()
    assert 'notify: ""  # --notify, a secret that is not written here' in config


def test_failure(material: tuple[Path, Path], server: ThreadingHTTPServer, tmp_path: Path) -> None:
    """Also of a run that is refused before it starts; then there is no start."""
    ended = run(words(material, tmp_path / "run", "--notify", address(server), "--resume-from-checkpoint", str(tmp_path / "none")))
    assert ended.returncode in (2, 3)
    ((_, _, event),) = server.came
    assert (event["event"], event["exit_code"], event["step"], event["loss"]) == ("failure", ended.returncode, None, None)
    assert event["total_steps"] is None and event["attempt"] is None, "what is not known is null"
    assert event["cause"] in ended.stderr and "FAILED" in event["text"]
    assert_no_secret(tmp_path, ended.stderr)
    server.came.clear()
    typo = run(words(material, tmp_path / "run", "--notify", address(server), "--rank", "0"))
    assert typo.returncode == 2 and [event["exit_code"] for _, _, event in server.came] == [2]
    server.came.clear()
    launched = run(["launch", "--nproc", "2", "--", *words(material, tmp_path / "run", "--notify", address(server), "--rank", "0")])
    assert launched.returncode == 2 and [event["exit_code"] for _, _, event in server.came] == [2]


def test_a_restarted_attempt_is_told_by_the_next_start(material: tuple[Path, Path], server: ThreadingHTTPServer, tmp_path: Path) -> None:
    """One of two ranks is killed: the run has not ended, and launch starts it again."""
    output = tmp_path / "run"
    command = words(material, output, "--notify", address(server), "--max-train-steps", "1000000", "--checkpointing-steps", "1000000")
    launcher = subprocess.Popen([str(SDTUNE), "launch", "--nproc", "2", "--", *command], env=environment(), text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for_steps(output, 3)
        os.kill(rank_pids(launcher.pid)[1], signal.SIGKILL)
        while not any(event["attempt"] == 2 for _, _, event in server.came):
            assert launcher.poll() is None, launcher.communicate()[1]
            time.sleep(0.05)
        launcher.terminate()
        _, errors = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
    assert launcher.returncode == 143, errors
    told = [(event["event"], event["attempt"], event["exit_code"]) for _, _, event in server.came]
    assert told == [("start", 1, None), ("start", 2, None), ("end", 2, 143)]


@pytest.mark.parametrize(("status", "said"), [(500, "answers with HTTP 500"), (404, "answers with HTTP 404"),
                                              (302, "redirects (HTTP 302)"), (307, "redirects (HTTP 307)")])
def test_a_fault_is_a_warning(status: int, said: str, material: tuple[Path, Path], server: ThreadingHTTPServer, tmp_path: Path) -> None:
    """Once for the start and once for the end; nothing is sent to where a redirect leads."""
    server.status = status
    ended = run(words(material, tmp_path / "run", "--notify", address(server)))
    assert ended.returncode == 0 and (tmp_path / "run" / "model" / "model_index.json").is_file()
    assert ended.stderr.count(said) == 2 and "notify: the end was not told" in ended.stderr
    assert {path for path, _, _ in server.came} == {f"/services/{SECRET}"}
    assert_no_secret(tmp_path, ended.stderr)


def test_nobody_there(material: tuple[Path, Path], tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = run(words(material, tmp_path / "run", "--notify", f"http://127.0.0.1:{port}/{SECRET}"))
    assert ended.returncode == 0 and ended.stderr.count("the connection failed: Connection refused") == 2
    assert_no_secret(tmp_path, ended.stderr)


@pytest.mark.long
def test_a_silent_server_is_given_up(material: tuple[Path, Path], server: ThreadingHTTPServer, tmp_path: Path) -> None:
    """The server answers after 25 s; the run does not wait for that."""
    server.status = 0
    ended = run(words(material, tmp_path / "run", "--notify", address(server)))
    assert ended.returncode == 0 and ended.stderr.count("does not answer in time") == 2
    assert_no_secret(tmp_path, ended.stderr)


@pytest.mark.parametrize("url", ["slack.com/x", "ftp://a/b", "https:///", "https://a b", "http:///x"])
def test_an_address_that_is_none_is_refused_unseen(url: str, material: tuple[Path, Path], tmp_path: Path) -> None:
    ended = run(words(material, tmp_path / "run", "--notify", url))
    assert ended.returncode == 2 and url not in ended.stderr
    assert "notify: is no address of a webhook" in ended.stderr and not (tmp_path / "run").exists()


def test_python_shows_no_secret() -> None:
    """repr, HTML and YAML hide it; a copy and a pickle keep it, since they are the configuration itself."""
    config = sdtune.TrainConfig(notify=f"https://hooks.example/{SECRET}")
    views: list[Any] = [repr(config), config.to_yaml(), config._repr_html_()]
    assert all(SECRET not in view for view in views) and "notify='***'" in views[0]
    for same in (copy.copy(config), pickle.loads(pickle.dumps(config))):
        assert same.notify == f"https://hooks.example/{SECRET}"

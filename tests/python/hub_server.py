"""A Hugging Face hub on loopback, with the faults that a network has. test_hub_server.py lets huggingface_hub use it.

Two servers: the hub, and the store of large files to which it redirects, another host by its port.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_good"
LARGE = 10_000  # bytes from which a binary file goes through git-lfs


def git_hash(content: bytes) -> str:
    """As `git hash-object` has it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """One model: its commits, each a mapping of path to content."""

    private: bool = False
    gated: bool = False
    card: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: dict[str, bytes], branch: str = "main", message: str = "first") -> str:
        """Adds the files to the branch; returns the commit."""
        whole = {**self.commits.get(self.refs.get(branch, ""), {}), **files}
        name = hashlib.sha1(repr((len(self.commits), sorted(whole.items()))).encode()).hexdigest()
        self.commits[name] = whole
        self.refs[branch] = name
        self.messages.append(message)
        return name

    def find(self, revision: str) -> str | None:
        """The commit of a branch or of a commit's own name."""
        return self.refs.get(revision, revision if revision in self.commits else None)


@dataclass
class Faults:
    """What goes wrong; counts run down."""

    cut: list[int] = field(default_factory=list)  # bytes after which each next download of a large file ends
    statuses: list[int] = field(default_factory=list)  # of the next requests to the hub
    store_statuses: list[int] = field(default_factory=list)
    wrong: set[str] = field(default_factory=set)  # files whose content is another than their hash
    no_ranges: bool = False
    other_range: bool = False
    more: bytes = b""  # sent behind a large file
    redirect: str = ""  # where each download is sent instead
    part_size: int = 0  # of uploads; 0: in one piece
    headers: dict[str, str] = field(default_factory=dict)  # added to answers about files
    ignore_private: bool = False
    limit: int = 0  # seconds that downloads are refused for from the first one on; the answer says them
    hang: threading.Event | None = None  # a download waits for it


class Hub:
    """The state of both servers."""

    def __init__(self) -> None:
        self.models: dict[str, Repository] = {}
        self.large: dict[str, bytes] = {}
        self.faults = Faults()
        self.requests: list[tuple[str, str, dict[str, str]]] = []  # method, path, headers; the store's path begins with "store:"
        self.parts: dict[str, dict[int, bytes]] = {}
        self.limited_until = 0.0
        self.url = self.store_url = ""

    def add(self, name: str, files: dict[str, bytes], **options: object) -> Repository:
        """A model with one commit."""
        model = Repository(**options)  # type: ignore[arg-type]
        model.commit(files)
        self.models[name] = model
        return model

    def is_large(self, path: str, content: bytes) -> bool:
        return len(content) >= LARGE and not path.endswith((".json", ".txt", ".md"))

    def is_early(self) -> bool:
        """Whether a download comes before the limit is over."""
        now = time.monotonic()
        if not self.limited_until:
            self.limited_until = now + self.faults.limit
        return now < self.limited_until

    def asked(self, part: str) -> list[tuple[str, str, dict[str, str]]]:
        """The requests whose path holds this."""
        return [request for request in self.requests if part in request[1]]


class Handler(BaseHTTPRequestHandler):
    """What both servers share."""

    protocol_version = "HTTP/1.1"
    hub: Hub
    prefix = ""

    def log_message(self, *_: object) -> None: ...

    def handle(self) -> None:
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def note(self) -> None:
        self.hub.requests.append((self.command, self.prefix + self.path, {key.lower(): value for key, value in self.headers.items()}))

    def answer(self, status: int, content: bytes | dict | list = b"", **headers: str) -> None:
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)


class HubHandler(Handler):
    """The hub itself."""

    def refuse(self, status: int, code: str, message: str = "") -> None:
        headers = {"X_Error_Code": code} if code else {}
        self.answer(status, {"error": message or code}, **headers, X_Error_Message=message or code)

    def allowed(self, name: str) -> Repository | None:
        """The model; None once the request was refused."""
        said = self.headers.get("Authorization")
        if said is not None and said != f"Bearer {TOKEN}":
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        model = self.hub.models.get(name)
        if model is None or (model.private and said is None):
            return self.refuse(401 if said is None else 404, "RepoNotFound", "Repository not found")
        return model

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.note()
        if self.hub.faults.statuses and (status := self.hub.faults.statuses.pop(0)) != 200:
            return self.answer(status, b"<html>busy</html>", Retry_After="0")
        url = urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        if url.path == "/api/whoami-v2":
            return self.answer(200, {"type": "user", "name": "someone", "orgs": [], "auth": {"type": "access_token"}})
        if parts[:2] == ["api", "models"]:
            return self.describe("/".join(parts[2:4]), [unquote(part) for part in parts[4:]], parse_qs(url.query))
        if len(parts) > 4 and parts[2] == "resolve":
            return self.resolve("/".join(parts[:2]), unquote(parts[3]), unquote("/".join(parts[4:])))
        return self.refuse(404, "", "no such page")

    def describe(self, name: str, more: list[str], query: dict[str, list[str]]) -> None:
        model = self.allowed(name)
        if model is None:
            return None
        revision = more[1] if len(more) > 1 else "main"
        commit = model.find(revision)
        if commit is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = model.commits[commit]
        if more[:1] == ["tree"]:
            return self.answer(200, [{"type": "file", "path": path, "size": len(content), "oid": git_hash(content),
                                      **({"lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}}
                                         if self.hub.is_large(path, content) else {})} for path, content in files.items()])
        return self.answer(200, {"id": name, "modelId": name, "sha": commit, "private": model.private, "tags": [], "downloads": 0,
                                 "gated": "manual" if model.gated else False, "cardData": model.card, "likes": 0,
                                 "siblings": [{"rfilename": path} for path in sorted(files)]})

    def resolve(self, name: str, revision: str, path: str) -> None:
        model = self.allowed(name)
        if model is None:
            return None
        if model.gated:
            return self.refuse(403, "GatedRepo", f"Access to model {name} is restricted")
        commit = model.find(revision)
        if commit is None:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        content = model.commits[commit].get(path)
        if content is None:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        headers = {"X_Repo_Commit": commit, "Accept_Ranges": "bytes", **{key.replace("-", "_"): value
                                                                     for key, value in self.hub.faults.headers.items()}}
        if self.hub.faults.redirect:
            return self.answer(302, **headers, Location=self.hub.faults.redirect)
        if not self.hub.is_large(path, content):
            if self.command == "GET" and self.hub.is_early():
                return self.answer(429, b"too many", Retry_After=str(self.hub.faults.limit))
            sent = b"x" * len(content) if path in self.hub.faults.wrong else content
            return self.answer(200, sent, **{"ETag": f'"{git_hash(content)}"', **headers})
        oid = hashlib.sha256(content).hexdigest()
        self.hub.large[oid] = b"y" * len(content) if path in self.hub.faults.wrong else content
        return self.answer(302, **{"X_Linked_Size": str(len(content)), "X_Linked_Etag": f'"{oid}"', **headers},
                           Location=f"{self.hub.store_url}/large/{oid}?signed=yes")

    def do_POST(self) -> None:
        self.note()
        body = self.body()
        if self.hub.faults.statuses and (status := self.hub.faults.statuses.pop(0)) != 200:
            return self.answer(status, b"busy", Retry_After="0")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        parts = urlsplit(self.path).path.strip("/").split("/")
        if self.path == "/api/repos/create":
            return self.create(json.loads(body))
        if self.path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if parts[-4:] == ["info", "lfs", "objects", "batch"]:
            return self.batch(json.loads(body))
        if parts[0] == "verify":
            asked = json.loads(body)
            good = len(self.hub.large.get(asked["oid"], b"")) == asked["size"]
            return self.answer(200 if good else 422, {})
        if len(parts) == 6 and parts[4] == "preupload":
            files = json.loads(body)["files"]
            return self.answer(200, {"files": [{"path": file["path"], "shouldIgnore": file["path"].endswith(".ignored"), "oid": None,
                                                "uploadMode": "lfs" if self.hub.is_large(file["path"], b" " * file["size"])
                                                else "regular"} for file in files]})
        if len(parts) == 6 and parts[4] == "commit":
            return self.commit("/".join(parts[2:4]), unquote(parts[5]), body)
        return self.refuse(404, "", "no such page")

    def create(self, asked: dict) -> None:
        name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
        if asked.get("organization") == "others":
            return self.refuse(403, "", "You don't have the rights to create a model under the namespace others")
        if name in self.hub.models:
            return self.answer(409, {"error": "You already created this model repo", "url": f"{self.hub.url}/{name}"})
        private = (asked.get("private") or asked.get("visibility") == "private") and not self.hub.faults.ignore_private
        self.hub.add(name, {".gitattributes": b""}, private=bool(private))
        return self.answer(200, {"url": f"{self.hub.url}/{name}", "name": name})

    def batch(self, asked: dict) -> None:
        objects = []
        for item in asked["objects"]:
            oid, size = item["oid"], item["size"]
            made: dict = {"oid": oid, "size": size}
            if oid not in self.hub.large:
                upload: dict = {"href": f"{self.hub.store_url}/large/{oid}"}
                if self.hub.faults.part_size:
                    count = -(-size // self.hub.faults.part_size)
                    upload = {"href": f"{self.hub.store_url}/complete/{oid}", "header": {
                        "chunk_size": str(self.hub.faults.part_size),
                        **{f"{part + 1:05}": f"{self.hub.store_url}/part/{oid}/{part + 1}" for part in range(count)}}}
                made["actions"] = {"upload": upload, "verify": {"href": f"{self.hub.url}/verify/{oid}"}}
            objects.append(made)
        self.answer(200, {"transfer": "multipart" if self.hub.faults.part_size else "basic", "objects": objects})

    def commit(self, name: str, branch: str, body: bytes) -> None:
        model = self.allowed(name)
        if model is None:
            return None
        if branch not in model.refs:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {branch}")
        files, message = {}, ""
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                message = value["summary"]
            elif item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"], validate=True)
            else:
                if value["oid"] not in self.hub.large:
                    return self.refuse(422, "", "LFS pointer pointed to a file that does not exist")
                files[value["path"]] = self.hub.large[value["oid"]]
        oid = model.commit(files, branch, message)
        return self.answer(200, {"success": True, "commitOid": oid, "commitUrl": f"{self.hub.url}/{name}/commit/{oid}", "hookOutput": ""})


class StoreHandler(Handler):
    """Where large files are."""

    prefix = "store:"

    def do_GET(self) -> None:
        self.note()
        faults = self.hub.faults
        if faults.hang is not None:
            faults.hang.wait(60)
        if faults.store_statuses and (status := faults.store_statuses.pop(0)) != 200:
            return self.answer(status, b"busy")
        if self.hub.is_early():
            return self.answer(429, b"too many", Retry_After=str(faults.limit))
        content = self.hub.large[urlsplit(self.path).path.split("/")[2]] + faults.more
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").split("-")[0]) if asked and not faults.no_ranges else 0
        if start and start >= len(content):
            return self.answer(416, b"")
        headers = {"Content_Length": str(len(content) - start)}
        if start:
            at = start + 1 if faults.other_range else start
            headers["Content_Range"] = f"bytes {at}-{len(content) - 1}/{len(content)}"
        cut = faults.cut.pop(0) if faults.cut else None
        if cut is None:
            return self.answer(206 if start else 200, content[start:], **headers)
        self.answer(206 if start else 200, content[start:start + cut], **headers)
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(2)
        return None

    def do_PUT(self) -> None:
        self.note()
        body = self.body()
        if self.hub.faults.store_statuses and (status := self.hub.faults.store_statuses.pop(0)) != 200:
            return self.answer(status, b"busy")
        parts = self.path.strip("/").split("/")
        if parts[0] == "part":
            self.hub.parts.setdefault(parts[1], {})[int(parts[2])] = body
            return self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')
        if hashlib.sha256(body).hexdigest() != parts[1]:
            return self.answer(400, b"BadDigest")
        self.hub.large[parts[1]] = body
        return self.answer(200)

    def do_POST(self) -> None:
        self.note()
        asked = json.loads(self.body())
        parts = self.hub.parts[asked["oid"]]
        content = b"".join(parts[item["partNumber"]] for item in asked["parts"])
        right = all(item["etag"] == f'"{hashlib.md5(parts[item["partNumber"]]).hexdigest()}"' for item in asked["parts"])
        if not right or hashlib.sha256(content).hexdigest() != asked["oid"]:
            return self.answer(400, b"BadDigest")
        self.hub.large[asked["oid"]] = content
        return self.answer(200, {})


@contextmanager
def serve(tls: ssl.SSLContext | None = None) -> Iterator[Hub]:
    """A hub that runs until the end of the block; encrypted where a certificate is given."""
    hub = Hub()
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (handler,), {"hub": hub})) for handler in (HubHandler, StoreHandler)]
    for server in servers if tls else ():
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    hub.url, hub.store_url = (f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        if hub.faults.hang is not None:
            hub.faults.hang.set()
        for server in servers:
            server.shutdown()
            server.server_close()

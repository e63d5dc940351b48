"""The metadata services of EC2, Google and Azure, served on loopback as their manuals describe them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "a-token=="
HEADERS = {"google": ("Metadata-Flavor", "Google"), "azure": ("Metadata", "true")}


class Service:
    """What it answers: set `notice` to take the machine away, `broken` to answer 500 to every question but the first."""

    def __init__(self, cloud: str) -> None:
        self.cloud, self.notice, self.broken = cloud, "", False
        self.expired = False  # the token of EC2
        self.asked: list[str] = []
        self.address = ""

    def answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        self.asked.append(f"{method} {path}")
        if self.broken and len(self.asked) > 1:
            return 500, "out of order"
        if self.cloud == "ec2":
            return self.ec2(method, path, headers)
        name, value = HEADERS[self.cloud]
        if headers.get(name) != value or method != "GET":
            return 403, "forbidden"
        return self.google(path) if self.cloud == "google" else self.azure(path)

    def ec2(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        if (method, path) == ("PUT", "/latest/api/token"):
            self.expired = False
            return (200, TOKEN) if 1 <= int(headers.get("X-aws-ec2-metadata-token-ttl-seconds", 0)) <= 21600 else (400, "")
        if headers.get("X-aws-ec2-metadata-token") != TOKEN or self.expired:
            return 401, "no token"
        if path == "/latest/meta-data/events/recommendations/rebalance":
            return 200, json.dumps({"noticeTime": "2026-11-23T20:00:00Z"})
        return (200, self.notice) if path == "/latest/meta-data/spot/instance-action" and self.notice else (404, "")

    def google(self, path: str) -> tuple[int, str]:
        return (200, self.notice or "FALSE") if path == "/computeMetadata/v1/instance/preempted" else (404, "")

    def azure(self, path: str) -> tuple[int, str]:
        if path.startswith("/metadata/instance/compute/name?api-version="):
            return 200, "vm_0"
        events = json.loads(self.notice) if self.notice else []
        known = path == "/metadata/scheduledevents?api-version=2020-07-01"
        return (200, json.dumps({"DocumentIncarnation": 1, "Events": events})) if known else (404, "")


@contextmanager
def serve(cloud: str) -> Iterator[Service]:
    """The service on a free port of loopback, at service.address."""
    service = Service(cloud)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self) -> None:
            status, text = service.answer(self.command, self.path, dict(self.headers.items()))
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = reply  # noqa: N815

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()

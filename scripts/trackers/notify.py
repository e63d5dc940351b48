#!/usr/bin/env python3
"""Posts one event of a run to a webhook, once and without following a redirect.

sdtune starts it (train/track/notify.h) with a socket as file descriptor 3: one line of JSON comes in, {"url", "payload"}; one goes back,
{"fault": text}, empty where the server took it. The address is a secret: it stands in no argument and in no answer.
"""

from __future__ import annotations

import datetime
import http.client
import json
import platform
import signal
import socket
import ssl
import urllib.error
import urllib.request
from typing import Any

CHANNEL = 3
SECONDS = 10.0  # for a connection, and between two pieces of an answer
DISCORD_MOST = 2000  # characters of `content`


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the secret to another server."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def clock(seconds: float) -> str:
    """UTC, as ISO 8601 writes it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="seconds")


def text_of(event: dict[str, Any]) -> str:
    """One line for a person."""
    begin = {"start": "started", "end": "ended", "failure": "FAILED"}[event["event"]]
    parts = [f"sdtune {begin} on {event['host']}: {event['run'] or 'no run folder'}"]
    if event["step"] is not None:
        parts.append(f"step {event['step']} of {event['total_steps']}")
    if event["loss"] is not None:
        parts.append(f"loss {event['loss']:.4f}")
    if event["event"] != "start":
        parts.append(f"{event['cause']} (exit code {event['exit_code']})")
    return ", ".join(parts)[:DISCORD_MOST]


def complete(payload: dict[str, Any]) -> dict[str, Any]:
    """The event with host and clock times; Slack reads `text`, Discord `content`."""
    event = {**payload, "host": platform.node(), "started": clock(payload["started"]), "time": clock(payload["time"])}
    text = text_of(event)
    return {"text": text, "content": text, **event}


def fault_of(error: Exception) -> str:
    """Why it failed, without the address."""
    if isinstance(error, urllib.error.HTTPError):
        if 300 <= error.code < 400:
            return f"the server redirects (HTTP {error.code}), which is not followed; give the address that it redirects to"
        return f"the server answers with HTTP {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "the server does not answer in time"
    if isinstance(reason, ssl.SSLError):
        return f"the connection is not secure: {reason.reason}"
    if isinstance(reason, OSError) and reason.strerror:
        return f"the connection failed: {reason.strerror}"
    return f"the connection failed: {type(reason).__name__}"


def post(url: str, payload: dict[str, Any]) -> str:
    """The fault; empty where there is none."""
    try:
        request = urllib.request.Request(url, json.dumps(complete(payload)).encode(), method="POST",
                                         headers={"Content-Type": "application/json", "User-Agent": "sdtune"})
        urllib.request.build_opener(NoRedirect).open(request, timeout=SECONDS).close()
        return ""
    except (OSError, ValueError, http.client.HTTPException) as error:
        return fault_of(error)


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    with socket.socket(fileno=CHANNEL) as channel:
        message = json.loads(channel.makefile("rb").readline())
        fault = post(message["url"], message["payload"])
        try:
            channel.sendall(json.dumps({"fault": fault}).encode() + b"\n")
        except OSError:
            pass  # the run is over


if __name__ == "__main__":
    main()

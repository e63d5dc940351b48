"""How often the files of a folder are opened, whoever opens them: counted by the kernel (inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from pathlib import Path
from types import TracebackType

IN_OPEN, IN_CLOSE, IN_NONBLOCK = 0x20, 0x18, os.O_NONBLOCK
IN_ISDIR, IN_Q_OVERFLOW = 0x40000000, 0x4000
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows


class FileOpens:
    """with FileOpens(folder) as opens: ...; then opens.count says how often each file was opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count: Counter[str] = Counter()

    def __enter__(self) -> FileOpens:
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.inotify_init1(IN_NONBLOCK)
        # Two equal events in a row count as one, so that closing must stand between two openings.
        watch = libc.inotify_add_watch(self._file, os.fsencode(self.folder), IN_OPEN | IN_CLOSE)
        if self._file < 0 or watch < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        events = b""
        while True:
            try:
                events += os.read(self._file, 1 << 20)
            except BlockingIOError:
                break
        os.close(self._file)
        at = 0
        while at < len(events):
            _, mask, _, length = EVENT.unpack_from(events, at)
            name = events[at + EVENT.size:at + EVENT.size + length].rstrip(b"\0").decode()
            at += EVENT.size + length
            assert not mask & IN_Q_OVERFLOW, "too many events were not read in time"
            if mask & IN_OPEN and not mask & IN_ISDIR and name:
                self.count[name] += 1

"""Runs the program `sdtune` that belongs to this module, in a process of its own, and takes its report."""

from __future__ import annotations

import functools
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from . import _native
from ._errors import config_error, error_of

PART = 1 << 16  # bytes of one read
KEPT_LINES = 5  # of stderr, for an end that nothing else explains
REPORTED = (0, 2)  # exit codes beside which a report is printed: 2 where the report itself says that something is wrong


def places() -> list[Path]:
    """Where this very module's program may be: named by the wheel's own list, in its environment, or in its build folder."""
    package = Path(_native.__file__).parent
    in_environment = package / "../../../.." / "bin" / "sdtune"
    found = [Path(os.path.normpath(place))
             for place in (in_environment, package.parent / "bin" / "sdtune", package / "../.." / "app" / "sdtune")]
    import importlib.metadata  # here, since it loads much that `import sdtune` does not need
    try:
        files = importlib.metadata.distribution("sdtune").files or []
    except importlib.metadata.PackageNotFoundError:
        return found
    located = {file.name: Path(str(file.locate())) for file in files if file.name in ("sdtune", Path(_native.__file__).name)}
    own, program = located.get(Path(_native.__file__).name), located.get("sdtune")
    if own is not None and program is not None and own.resolve() == Path(_native.__file__).resolve():
        found.insert(0, program)
    return found


@functools.lru_cache
def version_of(program: Path, changed: int) -> str:
    """What it prints of itself; `changed` is its time stamp, so that another one is asked again. Raises ConfigError where it does not start,
    as without a library that it needs."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False)
    if not done.stdout.strip():
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode} and no message"
        raise config_error(str(program), f"does not start: {said:.300}", "install program and module together, in one environment")
    return done.stdout.strip().removeprefix("sdtune ")


def find_program() -> Path:
    """The program. Never one that PATH names. Raises ConfigError where it is missing, does not start or is of another version."""
    for place in places():
        if not os.access(place, os.X_OK) or not place.is_file():
            continue
        version = version_of(place, place.stat().st_mtime_ns)
        if version != _native.__version__:
            raise config_error(str(place), f"is of version {version} (needed: {_native.__version__}, as this module)",
                               "install program and module together")
        return place
    raise config_error("sdtune", f"the program of this module is not there (searched: {', '.join(map(str, places()))})",
                       "install the wheel, which holds both")


class Ended:
    """What a process left."""

    def __init__(self) -> None:
        self.output = b""  # of stdout
        self.lines: list[str] = []  # the last of stderr
        self.interrupted = False


class Relay:
    """Reads stdout and stderr of a process until it closes both; each line of stderr is handed to `show` as it comes."""

    def __init__(self, process: subprocess.Popen[bytes], show: Callable[[str], object]) -> None:
        self.process, self.show, self.ended, self.rest = process, show, Ended(), b""
        self.selector = selectors.DefaultSelector()
        for stream in (process.stdout, process.stderr):
            self.selector.register(cast(BinaryIO, stream), selectors.EVENT_READ)

    def read(self) -> None:
        """Some of what has come."""
        for key, _ in self.selector.select():
            part = os.read(key.fd, PART)
            if not part:
                self.selector.unregister(key.fileobj)
            elif key.fileobj is self.process.stdout:
                self.ended.output += part
            else:
                *lines, self.rest = (self.rest + part).split(b"\n")
                for line in lines:
                    self.line(line)
        if self.rest and not self.selector.get_map():
            self.line(self.rest)
            self.rest = b""

    def line(self, content: bytes) -> None:
        """One of stderr."""
        text = content.decode(errors="replace")
        self.ended.lines = [*self.ended.lines, text][-KEPT_LINES:]
        self.show(text)

    def run(self) -> Ended:
        """To the end. Interrupting it (Ctrl-C) interrupts the process once, and waits until it has stopped."""
        while True:
            try:
                while self.selector.get_map():
                    self.read()
                self.process.wait()
                return self.ended
            except KeyboardInterrupt:
                # A second one ends the program at once, as in a shell.
                self.ended.interrupted = True
                self.process.send_signal(signal.SIGINT)


def show_line(line: str) -> None:
    """Where Python's own messages go."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


def start(words: Sequence[str], errors: BinaryIO) -> subprocess.Popen[bytes]:
    """The program with these words: ends when this process ends, and writes its errors into `errors`.

    Its process group is its own, so that Ctrl-C of a terminal reaches Python alone, which hands it on once.
    """
    settings = {**os.environ, "SDTUNE_CALLER": str(os.getpid()), "SDTUNE_ERROR_FILE": f"/dev/fd/{errors.fileno()}"}
    return subprocess.Popen([find_program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=settings, pass_fds=[errors.fileno()], process_group=0)


def end_error(command: str, code: int, lines: list[str]) -> _native.Error:
    """Of an end without a report that the program did not explain."""
    where = f"sdtune {command}"
    if code < 0 or code in (130, 143):
        number = -code if code < 0 else code - 128
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        hint = "the system may have had no memory left" if name == "SIGKILL" else ""
        return error_of("Error", [(where, f"was ended by {name}", hint)], 128 + number)
    return error_of("Error", [(where, f"ended with exit code {code} and no report: {' | '.join(lines) or 'no message'}", "")], code)


def report_of(command: str, words: Sequence[str], progress: bool) -> dict[str, Any]:
    """The report that `sdtune COMMAND WORDS... --json` prints. Raises what the program refuses, as the module's own classes."""
    for word in words:
        if "\0" in word:
            raise config_error(word.partition("=")[0], "must not contain a NUL byte")
    with tempfile.TemporaryFile() as errors:
        with start([command, *words, "--json"], cast(BinaryIO, errors)) as process:
            try:
                ended = Relay(process, show_line if progress else lambda line: None).run()
            except BaseException:  # of the relay itself, such as sys.stderr that is closed
                process.kill()
                raise
        if ended.interrupted:
            raise KeyboardInterrupt
        errors.seek(0)
        told = errors.read()
    if told:
        error = json.loads(told)
        problems = [(problem["where"], problem["what"], problem["hint"]) for problem in error["problems"]]
        raise error_of(error["error"], problems, error["exit_code"])
    if process.returncode not in REPORTED or not ended.output.strip():
        raise end_error(command, process.returncode, ended.lines)
    report: dict[str, Any] = json.loads(ended.output)
    return report

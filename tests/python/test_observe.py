"""metrics.jsonl, TensorBoard's event files and validation images, read back by the real tensorboard and Pillow."""

from __future__ import annotations

import io
import json
import resource
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sdtune

pytest.importorskip("tensorboard")
from tensorboard import context  # noqa: E402
from tensorboard.backend.event_processing import event_accumulator  # noqa: E402
from tensorboard.data import provider, server_ingester  # noqa: E402
from tensorboard.util import grpc_util  # noqa: E402

NOT_SCALARS = {"attempt", "step", "skipped", "time", "elapsed"}


def log_steps(logs: sdtune.RunLogs, first: int, last: int, offset: float = 0.0) -> None:
    for step in range(first, last + 1):
        logs.step(step, loss=1 / step + offset, loss_instance=0.7 / step, loss_prior=0.3 / step, epoch=step / 5,
                  lr=1e-4 / step, grad_norm=3.3, images_per_s=7.25, time=1.6e9 + step, max_memory_bytes=3_000_000_007)


def lines_of(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def accumulate(run: Path) -> event_accumulator.EventAccumulator:
    everything = {event_accumulator.SCALARS: 0, event_accumulator.IMAGES: 0}
    accumulator = event_accumulator.EventAccumulator(str(run), size_guidance=everything)
    accumulator.Reload()
    return accumulator


def assert_equal_to_jsonl(run: Path) -> None:
    """Each scalar of each line is in TensorBoard once, to the last bit of float32."""
    accumulator = accumulate(run)
    lines = lines_of(run)
    tags = {key for line in lines for key, value in line.items() if value is not None} - NOT_SCALARS
    assert set(accumulator.Tags()["scalars"]) == tags and "loss_prior" in tags
    for tag in tags:
        events = accumulator.Scalars(tag)
        assert [event.step for event in events] == [line["step"] for line in lines]
        assert [event.value for event in events] == [float(np.float32(line[tag])) for line in lines]
        assert [event.wall_time for event in events] == [line["time"] for line in lines]


def test_scalars_equal_the_jsonl(tmp_path: Path) -> None:
    logs = sdtune.RunLogs(tmp_path)
    log_steps(logs, 1, 12)
    assert [line["step"] for line in lines_of(tmp_path)] == list(range(1, 13))
    assert lines_of(tmp_path)[3]["loss"] == 0.25 and logs.warnings == []
    assert_equal_to_jsonl(tmp_path)


def test_a_changed_line_fails_the_comparison(tmp_path: Path) -> None:
    log_steps(sdtune.RunLogs(tmp_path), 1, 3)
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text().replace("0.5", "0.50001"))
    with pytest.raises(AssertionError):
        assert_equal_to_jsonl(tmp_path)


def server_steps(folder: Path) -> list[int]:
    """The steps of `loss` that TensorBoard's own data server, its second loader, shows for the only run in `folder`."""
    server = server_ingester.SubprocessServerDataIngester(
        server_binary=server_ingester.get_server_binary(), logdir=str(folder), reload_interval=1,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL)
    server.start()
    wanted = {"experiment_id": "", "plugin_name": "scalars"}
    request = context.RequestContext()
    deadline = time.monotonic() + 60
    while not server.data_provider.list_scalars(request, **wanted) and time.monotonic() < deadline:
        time.sleep(0.1)
    runs = server.data_provider.read_scalars(request, **wanted, downsample=10_000,
                                             run_tag_filter=provider.RunTagFilter(tags=["loss"]))
    (run,) = runs.values()
    return [point.step for point in run["loss"]]


def test_each_step_once_after_many_kills(tmp_path: Path) -> None:
    folder, tmp_path = tmp_path, tmp_path / "run"
    done = 0
    for attempt in range(1, 8):
        logs = sdtune.RunLogs(tmp_path, first_step=done, attempt=attempt)
        log_steps(logs, done + 1, done + 9, offset=attempt)
        del logs
        if attempt < 7:  # a kill tears the last record of both
            with (tmp_path / "metrics.jsonl").open("a") as log:
                log.write('{"attempt": 1, "step"')
            newest = max(tmp_path.glob("events.out.tfevents.*"))
            newest.write_bytes(newest.read_bytes() + b"\x40\0\0\0\0\0\0\0torn")
        done += 5  # the newest checkpoint is older than the last step
    assert [line["step"] for line in lines_of(tmp_path)] == list(range(1, done - 5 + 9 + 1))
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 7
    assert_equal_to_jsonl(tmp_path)
    assert server_steps(folder) == [line["step"] for line in lines_of(tmp_path)]


def test_fresh_run_forgets_an_old_log(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\nnot json\n')
    log_steps(sdtune.RunLogs(tmp_path), 1, 1)
    assert [line["step"] for line in lines_of(tmp_path)] == [1]


def test_numbers_that_are_not_finite_stay_json(tmp_path: Path) -> None:
    sdtune.RunLogs(tmp_path).step(1, loss=float("nan"), loss_instance=float("inf"))
    line = lines_of(tmp_path)[0]
    assert line["loss"] is None and line["loss_instance"] is None and line["loss_prior"] is None
    assert np.isnan(accumulate(tmp_path).Scalars("loss")[0].value)


def test_validation_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (24, 16, 3), dtype=np.uint8) for _ in range(3)]
    logs = sdtune.RunLogs(tmp_path)
    logs.validation(100, images, ["a photo of sks person", "b", "\u00fc"], [7, 8, 2**63])
    folder = tmp_path / "samples" / "step-00000100"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["00_seed-7.png", "01_seed-8.png", f"02_seed-{2**63}.png", "grid.png"]
    accumulator = accumulate(tmp_path)
    for index, picture in enumerate(images):
        content = (folder / names[index]).read_bytes()
        image = Image.open(io.BytesIO(content))
        assert np.array_equal(np.asarray(image), picture)
        assert image.text["step"] == "100" and image.text["seed"] == names[index][8:-4]
        shown = accumulator.Images(f"validation/{index}")
        assert [(event.step, event.width, event.height) for event in shown] == [(100, 16, 24)]
        assert shown[0].encoded_image_string == content
    assert Image.open(folder / "00_seed-7.png").text["prompt"] == "a photo of sks person"


def test_a_log_that_cannot_be_written_never_raises(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    (tmp_path / "samples").write_text("in the way")
    logs = sdtune.RunLogs(tmp_path)
    log_steps(logs, 1, 5)
    logs.validation(5, [np.zeros((8, 8, 3), np.uint8)], ["p"], [0])
    assert len(logs.warnings) == 2, "one warning a log, not one a step"
    assert "metrics.jsonl" in logs.warnings[0] and "samples" in logs.warnings[1]
    assert len(accumulate(tmp_path).Scalars("loss")) == 5


def test_a_full_disk_leaves_whole_records(tmp_path: Path) -> None:
    logs = sdtune.RunLogs(tmp_path)
    log_steps(logs, 1, 4)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (tmp_path / "metrics.jsonl").stat().st_size
    # Files may grow by a third of a line: the write is cut short, as on a full disk (Python ignores SIGXFSZ).
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
    try:
        log_steps(logs, 5, 7)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log_steps(logs, 8, 9)
    assert [line["step"] for line in lines_of(tmp_path)] == [1, 2, 3, 4, 8, 9]
    assert {event.step for event in accumulate(tmp_path).Scalars("loss")} >= {1, 2, 3, 4, 8, 9}
    assert sum("metrics.jsonl" in warning for warning in logs.warnings) == 1


def test_an_unknown_or_wrong_keyword_of_a_step_is_named(tmp_path: Path) -> None:
    logs = sdtune.RunLogs(tmp_path)
    for given, words in (({"loss_prio": 0.5}, ["loss_prio", "loss_prior"]), ({"lr": "high"}, ["lr", "a number"])):
        with pytest.raises(sdtune.ConfigError) as caught:
            logs.step(1, loss=1.0, loss_instance=1.0, **given)
        assert all(word in str(caught.value) for word in words), str(caught.value)
    assert not (tmp_path / "metrics.jsonl").exists() or lines_of(tmp_path) == []
    logs.step(1, loss=1.0, loss_instance=1.0, loss_prior=None, lr=1e-4)
    assert lines_of(tmp_path)[0]["lr"] == 1e-4

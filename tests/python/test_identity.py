"""Identity evaluation during a run: the curve, the best weights, the early stop. What its figures mean is
tested beside the code that makes them (tests/train/portrait/evaluate/identity_evaluation_test.cpp); here the model is random."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ports import free_port
from program import ROOT, SDTUNE, run
from test_ranks import launched, start_rank
from tiny_models import make_pipeline
from training_reference import write_base, write_photos

import sdtune

PHOTOS = Path(__file__).resolve().parent.parent.parent / "examples" / "me"
STEPS = 8


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random base whose note says that it generates rendered people."""
    folder = tmp_path_factory.mktemp("identity")
    base = write_base(make_pipeline("sd1", folder / "vocabulary"), folder / "base")
    (base / "sdtune.json").write_text('{"rendered_people": true}')
    return base


def words(base: Path, output: Path, *options: str) -> list[str]:
    return ["train", "--base", str(base), "--images", str(PHOTOS), "--output", str(output), "--device", "cpu",
            "--learning-rate", "2e-2", "--lr-scheduler", "constant", "--lr-warmup-steps", "0", "--max-train-steps",
            str(STEPS), "--checkpointing-steps", "3", "--identity-steps", "2", "--num-identity-images", "8",
            "--identity-inference-steps", "2", *options]


@pytest.fixture(scope="module")
def watched(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with identity evaluations, to its end."""
    output = tmp_path_factory.mktemp("watched") / "run"
    ended = run(words(base, output))
    assert ended.returncode == 0, ended.stderr
    return output


def looks_of(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / "identity.jsonl").read_text().splitlines()]


def best_of(looks: list[dict]) -> int:
    return max((look for look in looks if look["step"] > 0), key=lambda look: (look["score"], -look["step"]))["step"]


def weights(output: Path) -> str:
    return hashlib.sha256((output / "model" / "unet" / "diffusion_pytorch_model.safetensors").read_bytes()).hexdigest()


def test_an_evaluation_every_so_many_steps_and_its_score_is_their_sum(watched: Path) -> None:
    looks = looks_of(watched)
    assert [look["step"] for look in looks] == [0, 2, 4, 6, 8]
    for look in looks:
        assert look["score"] == pytest.approx(min(look["identity"], 1) + look["prompt_fidelity"] - look["leak"])
        assert 0 <= look["accepted"] <= 1 and 0 <= look["prompt_fidelity"] <= 1 and 0 <= look["leak"] <= 1
    assert len({look["identity"] for look in looks}) == 5
    report = (watched / "report.html").read_text()
    assert "<figcaption>score</figcaption>" in report and "<figcaption>likeness</figcaption>" in report


def test_complaint_13_the_model_is_that_of_the_best_step(base: Path, watched: Path, tmp_path: Path) -> None:
    """Bytes of a run that ends at the best step, and not those of the last step."""
    best = best_of(looks_of(watched))
    assert json.loads((watched / "best" / "best.json").read_text())["step"] == best
    until = tmp_path / "until_best"
    assert run(words(base, until, "--max-train-steps", str(best), "--identity-steps", "none")).returncode == 0
    assert weights(until) == weights(watched)
    last = tmp_path / "last"
    ended = run(words(base, last, "--no-keep-best"))
    assert ended.returncode == 0, ended.stderr
    assert looks_of(last) == looks_of(watched) and not (last / "best").exists()
    assert (weights(last) == weights(watched)) == (best == STEPS)


def test_an_evaluation_changes_nothing_of_the_training(base: Path, watched: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    assert run(words(base, plain, "--identity-steps", "none")).returncode == 0
    losses = [[json.loads(line)["loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]
              for output in (plain, watched)]
    assert losses[0] == losses[1]
    assert not (plain / "identity.jsonl").exists()


def test_kills_leave_the_curve_and_the_model_of_an_undisturbed_run(base: Path, watched: Path, tmp_path: Path) -> None:
    output = tmp_path / "killed"
    command = [str(SDTUNE), *words(base, output, "--resume-from-checkpoint", "auto")]
    for lines in (1, 2, 4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        curve = output / "identity.jsonl"
        while process.poll() is None and (not curve.exists() or curve.read_text().count("\n") < lines):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert looks_of(output) == looks_of(watched)
    assert weights(output) == weights(watched)


def likeness_in_tensorboard(output: Path) -> list[tuple[int, float]]:
    """Step and value of each point that it shows, without what the session start of a later attempt discards."""
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    shown = reading.EventAccumulator(str(output), size_guidance={reading.SCALARS: 0})
    shown.Reload()
    return [(point.step, point.value) for point in shown.Scalars("likeness/identity")]


def test_steps_that_are_done_again_stay_in_tensorboard(base: Path, watched: Path, tmp_path: Path) -> None:
    """Their evaluations are not made again, but told again."""
    output = tmp_path / "again"
    shutil.copytree(watched, output)
    shutil.rmtree(output / "checkpoints" / "step-00000006")
    ended = run(words(base, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert looks_of(output) == looks_of(watched)
    points = likeness_in_tensorboard(output)
    assert points == likeness_in_tensorboard(watched)
    assert [step for step, _ in points] == [0, 2, 4, 6, 8]


def test_a_stop_during_an_identity_evaluation_is_made_up_for(base: Path, watched: Path, tmp_path: Path) -> None:
    output = tmp_path / "stopped"
    slow = ["--identity-inference-steps", "300"]
    process = subprocess.Popen([str(SDTUNE), *words(base, output, *slow)], stderr=subprocess.PIPE, text=True)
    while not (output / "identity.jsonl").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143, process.communicate()[1]
    assert looks_of(output) == []
    ended = run(words(base, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert looks_of(output) == looks_of(watched)


def test_patience_ends_the_run_on_a_plateau(base: Path, watched: Path, tmp_path: Path) -> None:
    """With the same evaluations as the undisturbed run up to there, and the best of those as the model."""
    looks = looks_of(watched)
    scores = [look["score"] for look in looks if look["step"] > 0]
    first_worse = next((i for i in range(1, len(scores)) if scores[i] <= max(scores[:i])), None)
    assert first_worse is not None, "choose a rate at which the random model does not get better at every look"
    output = tmp_path / "early"
    events: list[sdtune.IdentityEvent] = []
    config = sdtune.TrainConfig(
        base=str(base), images=str(PHOTOS), output=str(output), device="cpu", learning_rate=2e-2,
        lr_scheduler="constant", lr_warmup_steps=0, max_train_steps=STEPS, checkpointing_steps=3, identity_steps=2,
        num_identity_images=8, identity_inference_steps=2, early_stop_patience=1)
    result = sdtune.train(config, on_identity=events.append)
    assert looks_of(output) == looks[:first_worse + 2]
    assert result.step == 2 * (first_worse + 1)
    assert result.model_step == best_of(looks[:first_worse + 2]) < result.step
    assert [event.step for event in events] == [look["step"] for look in looks_of(output)]
    assert [event.is_best for event in events][-1] is False
    # Going on finds the run ended, and makes the same model.
    again = run(words(base, output, "--early-stop-patience", "1", "--resume-from-checkpoint", "latest"))
    assert again.returncode == 0, again.stderr
    assert looks_of(output) == looks[:first_worse + 2]


def test_lost_best_weights_are_named_and_the_last_ones_taken(base: Path, watched: Path, tmp_path: Path) -> None:
    output = tmp_path / "lost"
    shutil.copytree(watched, output)
    if best_of(looks_of(output)) == STEPS:
        pytest.fail("the best look is the last one: choose another rate")
    (output / "best" / "weights.safetensors").write_bytes(b"damaged")
    ended = run(words(base, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0
    assert "best" in ended.stderr and "last step's weights" in ended.stderr
    assert weights(output) != weights(watched)


@pytest.mark.long
def test_two_ranks_see_the_same_curve(base: Path, watched: Path, tmp_path: Path) -> None:
    output = tmp_path / "ranks"
    options = words(base, output, "--gradient-accumulation-steps", "1")
    ended = launched(2, [str(SDTUNE), *options, "--train-batch-size", "1"])
    one = tmp_path / "one"
    assert ended.returncode == 0, ended.stderr
    assert run(words(base, one, "--train-batch-size", "2")).returncode == 0
    for left, right in zip(looks_of(output), looks_of(one), strict=True):
        assert left["step"] == right["step"]
        assert left["identity"] == pytest.approx(right["identity"], abs=1e-2)
    alone = zip(looks_of(output), looks_of(watched), strict=True)  # without the second rank's images
    assert max(abs(left["identity"] - right["identity"]) for left, right in alone) > 3e-2


def test_ranks_that_read_faces_by_other_files_are_refused(base: Path, tmp_path: Path) -> None:
    """On each machine a classifier of its own under the same name. Rank 1 would find no result of rank 0's among its own."""
    disks = [tmp_path / f"machine{rank}" for rank in range(2)]
    for disk in disks:
        shutil.copytree(ROOT / "models" / "portrait-judge", disk / "classifier")
    judge = disks[1] / "classifier" / "judge.json"
    judge.write_text(judge.read_text() + "\n")
    command = [str(SDTUNE), *words(base, Path("run"), "--identity-classifier", "./classifier")]
    port = free_port()
    ranks = [start_rank(rank, 2, port, command, disk) for rank, disk in enumerate(disks)]
    try:
        errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [2, 2], errors
    assert all("sdtune: error: rank 1: has another portrait classifier" in text for text in errors), errors
    judge.write_text(judge.read_text()[:-1])
    for disk in disks:
        shutil.rmtree(disk / "run", ignore_errors=True)
    port = free_port()
    ranks = [start_rank(rank, 2, port, [*command, "--max-train-steps", "1"], disk) for rank, disk in enumerate(disks)]
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors


@pytest.mark.parametrize(("change", "said"), [
    (["--identity-steps", "none", "--early-stop-patience", "2"], "early_stop_patience"),
    (["--identity-judge", "nowhere"], "nowhere"),
    (["--instance-prompt", "a photo of a person"], "identity_steps"),
    (["--identity-steps", "0"], "identity_steps"),
    (["--num-identity-images", "0"], "num_identity_images"),
    (["--early-stop-patience", "0"], "early_stop_patience"),
])
def test_what_cannot_be_watched_is_refused(change: list[str], said: str, base: Path, tmp_path: Path) -> None:
    ended = run(words(base, tmp_path / "run", *change))
    assert ended.returncode == 2 and said in ended.stderr.replace("--", "").replace("-", "_")
    assert not (tmp_path / "run").exists()


def test_a_base_of_camera_photos_is_refused(base: Path, tmp_path: Path) -> None:
    camera = tmp_path / "camera"
    shutil.copytree(base, camera)
    (camera / "sdtune.json").unlink()
    ended = run(words(camera, tmp_path / "run"))
    assert ended.returncode == 2 and "identity_steps" in ended.stderr.replace("-", "_")
    assert not (tmp_path / "run").exists()


def test_camera_photos_are_refused(base: Path, tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "photos", 2, seed=0)
    ended = run([*words(base, tmp_path / "run"), "--images", str(photos)])
    assert ended.returncode == 2 and "2 of 2 photos" in ended.stderr and "identity_steps" in ended.stderr.replace("-", "_")
    assert not (tmp_path / "run").exists()


def named_photos(folder: Path, parent: str, caption: str = "") -> Path:
    """The example photos in a subfolder, each with that caption."""
    (folder / parent).mkdir(parents=True)
    for photo in PHOTOS.glob("*.png"):
        shutil.copy(photo, folder / parent)
        if caption:
            (folder / parent / f"{photo.stem}.txt").write_text(caption)
    return folder


@pytest.mark.parametrize(("parent", "caption"), [("10_ohwx man", ""), (".", "ohwx man on a beach")])
def test_words_that_no_caption_says_are_refused(parent: str, caption: str, base: Path, tmp_path: Path) -> None:
    """A folder of kohya's, or captions of all photos, and the default instance prompt: likeness would stay the base's."""
    photos = named_photos(tmp_path / "me", parent, caption)
    options = [*words(base, tmp_path / "run"), "--images", str(photos)]
    for command in ("check", "train"):
        ended = run([command, *options[1:]])
        assert ended.returncode == 2 and "instance_prompt: has the words \"sks person\"" in ended.stderr, ended.stderr
        assert f"is \"{caption or 'ohwx man'}\"" in ended.stderr and not (tmp_path / "run").exists()
    for more in (["--instance-prompt", "a photo of ohwx man"], ["--identity-steps", "none"], ["--trigger-word", "ohwx man"]):
        ended = run(["check", *options[1:], *more])
        assert ended.returncode == 0, ended.stderr


def test_each_subject_needs_its_own_words(base: Path, tmp_path: Path) -> None:
    """[trigger] in a caption has the words of its subject's instance prompt; another subject's caption does not count."""
    man = named_photos(tmp_path / "man", "10_ohwx man")
    woman = named_photos(tmp_path / "woman", ".", "[trigger] on a beach")
    subjects = [{"images": str(man), "instance_prompt": "a photo of zwx person"},
                {"images": str(woman), "instance_prompt": "a photo of ohwx man", "class_prompt": "a photo of a man"}]
    options = [*words(base, tmp_path / "run")[1:], "--images", "", "--concepts", json.dumps(subjects[0]), "--concepts",
               json.dumps(subjects[1])]
    ended = run(["check", *options])
    assert ended.returncode == 2 and "concepts[1].instance_prompt: has the words \"zwx person\"" in ended.stderr, ended.stderr
    assert "concepts[2].instance_prompt" not in ended.stderr


def test_a_line_that_was_cut_short_swallows_no_other(base: Path, watched: Path, tmp_path: Path) -> None:
    output = tmp_path / "cut"
    shutil.copytree(watched, output)
    lines = (output / "identity.jsonl").read_text().splitlines(keepends=True)
    (output / "identity.jsonl").write_text("".join(lines[:-1]) + lines[-1][:20])
    ended = run(words(base, output, "--resume-from-checkpoint", "latest"))
    assert ended.returncode == 0, ended.stderr
    assert looks_of(output) == looks_of(watched) and weights(output) == weights(watched)

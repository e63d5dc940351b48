"""A cloud that takes the machine away is heard in time: the run saves and ends with the code of a stop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from metadata_services import serve
from program import run
from test_rented_machines import ENDLESS, attempts_of, lines_of, material, start, wait_for, words  # noqa: F401

AZURE = {"EventId": "1", "EventType": "Preempt", "ResourceType": "VirtualMachine", "Resources": ["vm_0"],
         "EventStatus": "Scheduled", "NotBefore": "Mon, 23 Nov 2026 20:29:47 GMT"}
NOTICES = {"ec2": (json.dumps({"action": "terminate", "time": "2026-11-23T20:31:00Z"}), "ec2: terminate at 2026-11-23T20:31:00Z"),
           "google": ("TRUE", "google: the instance is preempted"),
           "azure": (json.dumps([AZURE]), "azure: preempted not before Mon, 23 Nov 2026 20:29:47 GMT")}
# What is no notice for this machine.
QUIET = {"ec2": "", "google": "FALSE",
         "azure": json.dumps([{**AZURE, "EventType": "Reboot"}, {**AZURE, "Resources": ["vm_1"]}])}


@pytest.mark.parametrize("cloud", list(NOTICES))
def test_a_notice_saves_and_stops(cloud: str, material: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    output = tmp_path / "run"
    with serve(cloud) as service:
        service.notice = QUIET[cloud]
        process = start(words(material, output, *ENDLESS, "--preemption", cloud, "--preemption-address", service.address))
        wait_for(process, lambda: len(lines_of(output)) >= 5)
        asked = len(service.asked)
        wait_for(process, lambda: len(service.asked) > asked)  # it was asked again, and the run goes on
        service.expired = True
        service.notice, text = NOTICES[cloud]
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    done = lines_of(output)[-1]["step"]
    assert (output / f"checkpoints/step-{done:08d}/manifest.json").exists()
    assert f"by preemption ({text}); state saved" in errors.splitlines()[-1]
    [attempt] = attempts_of(output)
    assert (attempt["cause"], attempt["exit_code"], attempt["redone_steps"]) == (f"preemption ({text})", 143, 0)
    again = run(words(material, output, "--max-train-steps", str(done + 1), "--resume-from-checkpoint", "latest"))
    assert again.returncode == 0 and lines_of(output)[-1]["step"] == done + 1, again.stderr


def test_all_ranks_stop_at_the_same_step(material: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    output = tmp_path / "run"
    with serve("google") as service:
        process = start(["launch", "--nproc", "2", "--", *words(material, output, *ENDLESS, "--preemption", "google",
                                                               "--preemption-address", service.address)])
        wait_for(process, lambda: len(lines_of(output)) >= 3)
        service.notice = "TRUE"
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 143, errors
    assert (output / f"checkpoints/step-{lines_of(output)[-1]['step']:08d}/manifest.json").exists()


@pytest.mark.parametrize("cloud", list(NOTICES))
def test_a_service_that_fails_later_is_one_warning(cloud: str, material: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    output = tmp_path / "run"
    with serve(cloud) as service:
        service.broken = True  # after the start has asked it
        process = start(words(material, output, *ENDLESS, "--preemption", cloud, "--preemption-address", service.address))
        wait_for(process, lambda: len(service.asked) >= 3 and len(lines_of(output)) >= 5)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 143
    assert errors.count(f"warning: preemption: the metadata service of {cloud} did not answer") == 1, errors
    assert f"the metadata service of {cloud} did not answer" in (output / "report.html").read_text()


def test_a_service_that_is_not_there_is_refused(material: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    nobody = run(words(material, tmp_path / "run", "--preemption", "ec2", "--preemption-address", "127.0.0.1:1"))
    assert nobody.returncode == 2 and len(nobody.stderr.splitlines()) == 1
    assert nobody.stderr.startswith("sdtune: error: preemption: the metadata service of ec2 at 127.0.0.1:1 does not answer as it "
                                    "should: Connection refused; is this machine of that cloud? In a container it answers")
    with serve("google") as service:  # another cloud's
        other = run(words(material, tmp_path / "run", "--preemption", "ec2", "--preemption-address", service.address))
    assert other.returncode == 2 and "/latest/api/token answers with HTTP status 403" in other.stderr
    elsewhere = run(words(material, tmp_path / "run", "--preemption", "google", "--preemption-address", "127.0.0.1:1"))
    assert elsewhere.returncode == 2 and elsewhere.stderr.endswith("; is this machine of that cloud?\n"), elsewhere.stderr
    assert not (tmp_path / "run").exists()


def test_nothing_is_asked_without_the_option(material: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    with serve("ec2") as service:
        ended = run(words(material, tmp_path / "run", "--max-train-steps", "3", "--preemption-address", service.address))
    assert ended.returncode == 0 and service.asked == [], ended.stderr

"""The templates of scripts/launch: valid by the schemas of what reads them, and right about our exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob
from program import SDTUNE
from sky_schema import sky_schemas
from test_ranks import WEIGHTS, base, environment, photos, torchrun, train_command  # noqa: F401 (base, photos: fixtures)

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "scripts" / "launch"
KUBERNETES = "1.37"
NEVER_AGAIN = {1, 2, 3, 4, 5, 6}  # model/base/error.h: 1-127 must not be retried
AGAIN = {137, 138, 143}


def words_of_train(base: Path, photos: Path, output: Path, *options: str) -> list[str]:  # noqa: F811
    """What follows `train` in a template."""
    return train_command(base, photos, output, "--max-train-steps", "8", "--seed", "3", *options)[2:]


def loaded(name: str) -> Any:
    return yaml.safe_load((TEMPLATES / name).read_text())


def arguments_are_ours(words: list[str]) -> None:
    """The program takes these words as options of launch and train; what is in $() a scheduler fills in."""
    filled = [re.sub(r"\$\(\w+\)", "0", word) for word in words if not word.startswith("--images")]
    done = subprocess.run([str(SDTUNE), *filled, "--images=/nowhere", "--sead=1"], env=environment(), capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "did you mean --seed?" in done.stderr, done.stderr


def test_kubernetes_job() -> None:
    service, job = yaml.safe_load_all((TEMPLATES / "kubernetes_job.yaml").read_text())
    kubernetes_validate.validate(service, KUBERNETES, strict=True)
    kubernetes_validate.validate(job, KUBERNETES, strict=True)
    rules = job["spec"]["podFailurePolicy"]["rules"]
    codes = {rule["action"]: set(rule["onExitCodes"]["values"]) for rule in rules if "onExitCodes" in rule}
    assert codes == {"FailJob": NEVER_AGAIN, "Count": AGAIN}
    assert {rule["action"] for rule in rules if "onPodConditions" in rule} == {"Ignore"}
    template = job["spec"]["template"]["spec"]
    container = template["containers"][0]
    assert template["restartPolicy"] == "Never"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2 and "--nnodes=2" in container["args"]
    assert f"--rendezvous={job['metadata']['name']}-0.{template['subdomain']}:29500" in container["args"]
    assert template["subdomain"] == service["metadata"]["name"]
    arguments_are_ours(container["args"])
    job["spec"]["podFailurePolicy"]["rules"][0]["action"] = "FailTheJob"  # the mutant
    job["spec"]["completions"] = "two"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, KUBERNETES, strict=True)


def test_kubeflow_trainjob() -> None:
    job = loaded("kubeflow_trainjob.yaml")
    parsed = TrainerV1alpha1TrainJob.from_dict(job)
    assert parsed is not None and parsed.to_dict() == job, "a key that the types do not have"
    text = job["spec"]["trainer"]["args"][0]
    words = re.sub(r"\$PET_MASTER_ADDR:\$PET_MASTER_PORT", "host:1", text).replace("$PET_NNODES", "2").replace("$PET_NODE_RANK", "0")
    arguments_are_ours(words.replace('"', "").replace("exec sdtune ", "").split())
    pod = job["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["/data"] in [volume["name"] for volume in pod["spec"]["volumes"]] and "/data/runs" in text
    job["spec"]["trainer"]["numNodes"] = "two"
    with pytest.raises(ValueError, match="numNodes"):
        TrainerV1alpha1TrainJob.from_dict(job)


def test_skypilot() -> None:
    task = loaded("skypilot.yaml")
    of_task, of_resources = (jsonschema.Draft202012Validator(schema) for schema in sky_schemas())
    of_task.validate(task)
    of_resources.validate(task["resources"])
    recovery = task["resources"]["job_recovery"]
    assert set(recovery["recover_on_exit_codes"]) == AGAIN - {137} and recovery["max_restarts_on_errors"] == 0
    words = task["run"].replace("\\\n", " ").replace('"$SKYPILOT_NUM_GPUS_PER_NODE"', "1").split()
    arguments_are_ours([word for word in words[1:] if word not in ("--images", "/data/me")])
    with pytest.raises(jsonschema.ValidationError):
        of_resources.validate({**task["resources"], "job_recovery": {**recovery, "recover_on_exit_codes": [300]}})


def test_compose() -> None:
    """There is no schema of it in a package that is small: what must be there is listed."""
    service = loaded("compose.yaml")["services"]["sdtune"]
    assert service["restart"] == "no" and service["network_mode"] == "none" and service["stop_grace_period"] == "120s"
    assert service["user"] == "10001" and service["read_only"] is True
    [device] = service["deploy"]["resources"]["reservations"]["devices"]
    assert f"--nproc={device['count']}" in service["command"], "a GPU a rank"
    arguments_are_ours(service["command"])


@pytest.mark.parametrize("name", ["torchrun_one_node.sh", "torchrun_two_nodes.sh", "slurm.sbatch"])
def test_scripts_are_sound(name: str) -> None:
    checker = shutil.which("shellcheck")
    assert checker, "scripts/setup.sh --tests installs shellcheck"
    done = subprocess.run([checker, "-s", "bash", str(TEMPLATES / name)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def with_tools(folder: Path, **variables: str) -> dict[str, str]:
    """The environment of a template: our program, the real torchrun, and the programs in `folder`."""
    path = f"{folder}:{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    return environment(PATH=path, SDTUNE=str(SDTUNE), **variables)


@pytest.mark.long
def test_torchrun_on_one_node_and_on_two(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """Two ranks on one machine, and one on each of two, with the real torchrun: the same bits."""
    one = subprocess.run([str(TEMPLATES / "torchrun_one_node.sh"), *words_of_train(base, photos, tmp_path / "one")],
                         env=with_tools(tmp_path, NPROC="2"), capture_output=True, text=True, timeout=200, check=False)
    assert one.returncode == 0, one.stderr
    nodes = [subprocess.Popen([str(TEMPLATES / "torchrun_two_nodes.sh"), *words_of_train(base, photos, tmp_path / "two")],
                              env=with_tools(tmp_path, NPROC="1", NODE_RANK=str(node), MASTER="127.0.0.1:29611"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for node in range(2)]
    errors = [node.communicate(timeout=200)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], errors
    assert (tmp_path / "one" / WEIGHTS).read_bytes() == (tmp_path / "two" / WEIGHTS).read_bytes()


# Two tasks on one machine with the variables that SLURM 22.05 gives a step; the batch script has some of them too.
FAKE_SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST="$NODES" SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=0
ended=no
trap 'ended=yes; [ -z "$tasks" ] || kill -TERM $tasks' TERM
for task in 0 1; do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" & tasks="$tasks $!"
done
[ $ended = no ] || kill -TERM $tasks
code=0
for task in $tasks; do
  wait $task; one=$?
  while kill -0 $task 2>/dev/null; do wait $task; one=$?; done
  if [ $one -gt $code ]; then code=$one; fi
done
exit $code
"""


def sbatch(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Runs the batch script as slurmd would, beside an srun and an scontrol of ours."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "srun").write_text(FAKE_SRUN)
    (tools / "scontrol").write_text(f'#!/bin/sh\necho "$@" >>{folder}/requeued\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    of_slurm = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_JOB_NODELIST": "127.0.0.[1,7]", "SLURM_NTASKS": "2", "SLURM_PROCID": "0",
                "SLURM_LOCALID": "0", "NODES": "127.0.0.[1,7]", **variables}
    return subprocess.Popen(["bash", str(TEMPLATES / "slurm.sbatch"), *words], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=with_tools(tools, **of_slurm))


def test_slurm_job(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """Ranks by SLURM's variables give torchrun's bits; a signal ahead of the limit saves and requeues; a mistake does not."""
    job = sbatch(tmp_path, *words_of_train(base, photos, tmp_path / "whole"))
    _, errors = job.communicate(timeout=200)
    assert job.returncode == 0, errors
    done = torchrun(2, [str(SDTUNE), "train", *words_of_train(base, photos, tmp_path / "torchrun")])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "whole" / WEIGHTS).read_bytes() == (tmp_path / "torchrun" / WEIGHTS).read_bytes()
    output = tmp_path / "stopped"
    job = sbatch(tmp_path, *words_of_train(base, photos, output, "--max-train-steps", "100000"))
    deadline = time.monotonic() + 90
    metrics = output / "metrics.jsonl"
    while not metrics.exists() or not metrics.stat().st_size:  # before its first step there is nothing to save
        assert time.monotonic() < deadline, "the run does not begin"
        time.sleep(0.05)
    job.send_signal(signal.SIGUSR1)
    _, errors = job.communicate(timeout=60)
    assert job.returncode == 0 and (tmp_path / "requeued").read_text() == f"requeue {os.getpid()}\n", errors
    assert list((output / "checkpoints").iterdir())
    assert json.loads((output / "run.json").read_text())["attempts"]
    job = sbatch(tmp_path, *words_of_train(base, photos, tmp_path / "wrong", "--seed", "none-at-all"))
    job.communicate(timeout=60)
    assert job.returncode == 2 and len((tmp_path / "requeued").read_text().splitlines()) == 1


def test_a_signal_while_slurm_starts_the_ranks(base: Path, photos: Path, tmp_path: Path) -> None:  # noqa: F811
    """Between the start of srun and the line that notes its number: the ranks end all the same, and the job is requeued."""
    early = tmp_path / "early.sh"
    early.write_text("""trap 'if [[ $BASH_COMMAND == "step=\\$!" ]]; then kill -USR1 $$; fi' DEBUG\n""")
    words = words_of_train(base, photos, tmp_path / "run", "--max-train-steps", "3000")
    job = sbatch(tmp_path, *words, BASH_ENV=str(early))
    _, errors = job.communicate(timeout=200)
    assert job.returncode == 0 and (tmp_path / "requeued").exists(), errors
    assert not (tmp_path / "run/model").exists(), "it was trained to the end"


def test_srun_gives_each_rank_the_cores_of_the_job(tmp_path: Path) -> None:
    """Not one core for eight threads: srun does not read what sbatch has put into SLURM_CPUS_PER_TASK."""
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\necho "cores ${SRUN_CPUS_PER_TASK:-none}, threads $OMP_NUM_THREADS"\n')
    srun.chmod(0o755)
    for variables, printed in (({"SLURM_CPUS_PER_TASK": "8"}, "cores 8, threads 8\n"), ({}, "cores none, threads 1\n")):
        of_job = {name: value for name, value in with_tools(tmp_path).items() if name not in ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK")}
        job = subprocess.run(["bash", str(TEMPLATES / "slurm.sbatch"), "--images", "me"], env={**of_job, **variables}, capture_output=True,
                             text=True, timeout=60, check=False)
        assert (job.returncode, job.stdout) == (0, printed), job.stderr


def test_a_rented_container_runs_the_words_of_the_page() -> None:
    """RunPod puts them behind the image's entry point, which in the image `runtime` is sdtune itself: `sdtune sdtune launch`."""
    paragraph = next(part for part in (ROOT / "docs/cloud.md").read_text().split("\n\n") if part.startswith("**RunPod, Vast**"))
    stages = re.split(r"^FROM ", (ROOT / "scripts/docker/Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    entries = {stage.splitlines()[0].split()[-1]: json.loads(found[1]) for stage in stages
               if (found := re.search(r"^ENTRYPOINT (\[.*\])$", stage, re.MULTILINE))}
    [target] = re.findall(r"`sdtune:VERSION-cu130-(\w+)-root`", paragraph)
    [words] = re.findall(r"`(sdtune launch [^`]*)`", paragraph)
    assert entries[target][-1] == "/usr/local/bin/start" and entries["runtime"][-1].endswith("/sdtune")
    arguments_are_ours([word for word in words.split()[1:] if word not in ("--images", "/workspace/me")])


def test_prices_are_those_of_the_plans() -> None:
    """The page has the table of the committed plans, whose prices are hours times the price of an hour."""
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "make_cloud_table.py"), "--check"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    prices = {gpu["name"]: gpu["price_per_hour"] for gpu in yaml.safe_load((ROOT / "configs" / "gpus.yaml").read_text())["gpus"]}
    for plan in json.loads((ROOT / "docs" / "measurements" / "cloud_plans.json").read_text()).values():
        assert {gpu["name"] for gpu in plan["gpus"]} == set(prices)
        assert all(gpu["price"] == pytest.approx(gpu["hours"] * prices[gpu["name"]], rel=1e-9) for gpu in plan["gpus"])


def test_every_template_is_described() -> None:
    page = (ROOT / "docs" / "cloud.md").read_text()
    assert [path.name for path in TEMPLATES.iterdir() if path.name not in page] == []

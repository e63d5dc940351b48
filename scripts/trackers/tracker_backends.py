"""What each tracker's own package is called with. Scalars have TensorBoard's names, images too."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Protocol

DEFAULT_PROJECT = "sdtune"
STOPPED = {130, 137, 143}  # by a signal


class Tracker(Protocol):
    """One run in one tracker. Every method may raise what the package raises."""

    def start(self, message: dict[str, Any], known: str | None) -> str:
        """Begins the run, or goes on with `known`; returns the id to go on with."""

    def scalars(self, step: int, time: float, values: dict[str, float]) -> None:
        """Of one optimizer step; time in s since 1970."""

    def images(self, step: int, images: list[dict[str, str]]) -> None:
        """name, path of a PNG, caption."""

    def model(self, folder: str) -> None:
        """The result as an artifact."""

    def end(self, code: int) -> None:
        """sdtune's exit code. Waits until everything is delivered."""


def project_of(message: dict[str, Any], variable: str) -> str:
    """The option, else the package's own environment variable, else one name for all."""
    return message["project"] or os.environ.get(variable, "") or DEFAULT_PROJECT


def artifact_name(name: str) -> str:
    """As every tracker takes it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"


class Wandb:
    """Weights & Biases. WANDB_MODE=offline writes into the run folder alone; `wandb sync` uploads it later."""

    def start(self, message: dict[str, Any], known: str | None) -> str:
        import wandb
        self._wandb, self._name = wandb, artifact_name(message["name"])
        self._run = wandb.init(project=project_of(message, "WANDB_PROJECT"), name=message["name"], id=known, resume="allow",
                               dir=message["folder"], settings=wandb.Settings(console="off"))
        self._run.config.update(message["config"], allow_val_change=True)
        return str(self._run.id)

    def scalars(self, step: int, time: float, values: dict[str, float]) -> None:
        self._run.log(values, step=step)

    def images(self, step: int, images: list[dict[str, str]]) -> None:
        self._run.log({image["name"]: self._wandb.Image(image["path"], caption=image["caption"]) for image in images}, step=step)

    def model(self, folder: str) -> None:
        artifact = self._wandb.Artifact(self._name, type="model")
        artifact.add_dir(folder)
        self._run.log_artifact(artifact)

    def end(self, code: int) -> None:
        self._run.finish(exit_code=code)


class Mlflow:
    """MLflow. MLFLOW_TRACKING_URI says where to."""

    MOST_PARAMS = 100  # of one call
    MOST_TEXT = 6000   # characters of a parameter

    def start(self, message: dict[str, Any], known: str | None) -> str:
        import mlflow
        self._mlflow = mlflow
        if known is None:
            mlflow.set_experiment(project_of(message, "MLFLOW_EXPERIMENT_NAME"))
            self._run = mlflow.start_run(run_name=message["name"], tags={"mlflow.source.name": "sdtune"})
        else:
            self._run = mlflow.start_run(run_id=known)
        self._options(message)
        return str(self._run.info.run_id)

    def _options(self, message: dict[str, Any]) -> None:
        """A parameter cannot be changed: what a resumed run has otherwise becomes a tag that names the step."""
        there = self._run.data.params
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in message["config"].items()}
        new = [(name, text[:self.MOST_TEXT]) for name, text in texts.items() if name not in there]
        for start in range(0, len(new), self.MOST_PARAMS):
            self._mlflow.log_params(dict(new[start:start + self.MOST_PARAMS]))
        changed = {name: text for name, text in texts.items() if name in there and there[name] != text[:self.MOST_TEXT]}
        if changed:
            self._mlflow.set_tags({f"from_step_{message['first_step']}.{name}": text for name, text in changed.items()})

    def scalars(self, step: int, time: float, values: dict[str, float]) -> None:
        self._mlflow.log_metrics(values, step=step, timestamp=int(time * 1000))

    def images(self, step: int, images: list[dict[str, str]]) -> None:
        for image in images:
            folder, _, _ = image["name"].rpartition("/")
            self._mlflow.log_artifact(image["path"], f"{folder or 'images'}/step-{step:08d}")

    def model(self, folder: str) -> None:
        self._mlflow.log_artifacts(folder, "model")

    def end(self, code: int) -> None:
        self._mlflow.end_run("FINISHED" if code == 0 else "KILLED" if code in STOPPED else "FAILED")


class Trackio:
    """trackio, which keeps runs in a database of this machine (TRACKIO_DIR)."""

    def start(self, message: dict[str, Any], known: str | None) -> str:
        import trackio
        self._trackio, self._name = trackio, artifact_name(message["name"])
        run = trackio.init(project=project_of(message, "TRACKIO_PROJECT"), name=known or message["name"], config=message["config"],
                           resume="allow" if known else "never", embed=False)
        return str(run.name)

    def scalars(self, step: int, time: float, values: dict[str, float]) -> None:
        self._trackio.log(values, step=step)

    def images(self, step: int, images: list[dict[str, str]]) -> None:
        self._trackio.log({image["name"]: self._trackio.Image(str(Path(image["path"])), caption=image["caption"]) for image in images},
                          step=step)

    def model(self, folder: str) -> None:
        self._trackio.log_artifact(folder, name=self._name, type="model")

    def end(self, code: int) -> None:
        self._trackio.finish()


BACKENDS: dict[str, type[Tracker]] = {"wandb": Wandb, "mlflow": Mlflow, "trackio": Trackio}

"""What trackers hold, read back by their own packages: run by the Python of .venv/trackers, prints JSON.

    tracker_reader.py FOLDER PROJECT     FOLDER/run is the run, FOLDER/mlruns MLflow's store, FOLDER/trackio trackio's
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = 32768  # of the log of LevelDB, in which wandb keeps its records; its Python package has no reader of that any more
FIRST, LAST, WHOLE = 2, 4, 1


def records(file: Path) -> Iterator[bytes]:
    data, at, parts = file.read_bytes(), 7, b""  # a head of wandb's own
    while at + 7 <= len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        if kind == 0:
            at += left
            continue
        piece = data[at + 7:at + 7 + length]
        parts = piece if kind in (WHOLE, FIRST) else parts + piece
        if kind in (WHOLE, LAST):
            yield parts
        at += 7 + length


def of_wandb(folder: Path) -> dict[str, Any]:
    from wandb.proto import wandb_internal_pb2
    found: dict[str, Any] = {"ids": [], "config": {}, "scalars": [], "images": [], "artifacts": [], "exits": []}
    for file in sorted(folder.glob("run/wandb/offline-run-*/*.wandb")):
        for content in records(file):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                found["ids"].append([record.run.project, record.run.display_name, record.run.run_id])
            if kind in ("run", "config"):
                for item in (record.run.config if kind == "run" else record.config).update:
                    found["config"]["/".join([item.key, *item.nested_key]).lstrip("/")] = json.loads(item.value_json)
            if kind == "exit":
                found["exits"].append(record.exit.exit_code)
            if kind == "artifact":
                found["artifacts"].append([record.artifact.type, sorted(entry.path for entry in record.artifact.manifest.contents)])
            if kind == "history":
                values = {"/".join([item.key, *item.nested_key]).lstrip("/"): json.loads(item.value_json) for item in record.history.item}
                step = record.history.step.num
                images = [name.removesuffix("/_type") for name, value in values.items() if value == "image-file"]
                for name in images:
                    image = (file.parent / "files" / values[f"{name}/path"]).read_bytes()
                    found["images"].append([name, step, hashlib.sha256(image).hexdigest(), values[f"{name}/caption"]])
                found["scalars"] += [[name, step, value] for name, value in values.items()
                                     if not name.startswith("_") and name.rpartition("/")[0] not in images]
    return found


def of_mlflow(folder: Path) -> dict[str, Any]:
    import mlflow
    client = mlflow.MlflowClient(f"file://{folder}/mlruns")
    found: dict[str, Any] = {"runs": [], "scalars": [], "images": [], "artifacts": []}
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id]):
            found["runs"].append([experiment.name, run.info.run_name, run.info.run_id, run.info.status])
            found["config"], found["tags"] = run.data.params, run.data.tags
            for name in run.data.metrics:
                history = client.get_metric_history(run.info.run_id, name)
                found["scalars"] += [[name, metric.step, metric.value] for metric in history]
            root = Path(run.info.artifact_uri.removeprefix("file://"))
            for file in sorted(root.rglob("*")):
                if file.is_file():
                    name = str(file.relative_to(root))
                    found["images" if name.endswith(".png") else "artifacts"].append(
                        [name, hashlib.sha256(file.read_bytes()).hexdigest()])
    return found


def of_trackio(folder: Path, project: str) -> dict[str, Any]:
    os.environ["TRACKIO_DIR"] = str(folder / "trackio")
    import trackio
    from trackio.cas import blob_path
    from trackio.sqlite_storage import SQLiteStorage
    runs = list(trackio.Api().runs(project))
    found: dict[str, Any] = {"runs": [run.name for run in runs], "scalars": [], "images": [], "artifacts": []}
    for run in runs:
        found["config"] = run.config
        for line in SQLiteStorage.get_logs(project, run.name):
            for name, value in line.items():
                if isinstance(value, dict) and "file_path" in value:
                    image = (folder / "trackio" / "media" / value["file_path"]).read_bytes()
                    found["images"].append([name, line["step"], hashlib.sha256(image).hexdigest(), value["caption"]])
                elif name not in ("step", "timestamp"):
                    found["scalars"].append([name, line["step"], value])
    for artifact in SQLiteStorage.get_artifacts(project):
        manifest = SQLiteStorage.get_artifact_manifest(project, artifact["name"], "latest")
        files = {entry["path"]: hashlib.sha256(blob_path(project, entry["digest"]).read_bytes()).hexdigest()
                 for entry in manifest["manifest"]}
        found["artifacts"].append([artifact["name"], artifact["type"], files])
    return found


if __name__ == "__main__":
    place, project = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps({"wandb": of_wandb(place), "mlflow": of_mlflow(place), "trackio": of_trackio(place, project)}))

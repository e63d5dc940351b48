"""Faults of options and of the folders that they name."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from planted_faults import ME, Fault, Place, both, content, option

CLASSIFIER = ME.parents[1] / "models" / "portrait-judge"


def output_is_a_file(place: Place) -> list[str]:
    return ["--output", str(place.write("a file", "x"))]


def class_folder_is_a_file(place: Place) -> list[str]:
    return ["--with-prior-preservation", "--class-data-dir", str(place.write("a file", "x"))]


def inside_a_file(*words: str) -> Fault:
    """The last of the words is an option for a folder, which would be inside a file."""
    return lambda place: [*words, str(place.write("a file", "x") / "folder")]


def held_lock(place: Place) -> list[str]:
    lock = place.write("run/run.lock", "process 1 on elsewhere").open()
    fcntl.flock(lock, fcntl.LOCK_EX)
    place.kept.append(lock)
    return []


def classifier(text: str, *words: str) -> Fault:
    """A folder that is given as the portrait classifier, with this judge.json."""
    def plant(place: Place) -> list[str]:
        place.write("classifier/judge.json", text)
        return ["--identity-classifier", str(place.folder / "classifier"), *words]
    return plant


def measured(change: Callable[[dict], object]) -> Fault:
    """A copy of the bundled portrait classifier with other figures."""
    def plant(place: Place) -> list[str]:
        folder = shutil.copytree(CLASSIFIER, place.folder / "classifier")
        info = json.loads((folder / "judge.json").read_text())
        change(info["figures"])
        (folder / "judge.json").write_text(json.dumps(info))
        return ["--identity-classifier", str(folder), "--identity-steps", "1"]
    return plant


def rendered(place: Place) -> list[str]:
    place.write("base/sdtune.json", '{"rendered_people": true}')
    return []


def broken_network(place: Place) -> list[str]:
    return ["--identity-steps", "1", "--identity-model", str(place.write("face.onnx", "no network"))]


def unreadable_cascade(place: Place) -> list[str]:
    network = str(place.write("face.onnx", "no network"))
    return ["--identity-steps", "1", "--identity-model", network, "--face-model", str(place.write("faces.xml", "none"))]


def unknown_face_model(place: Place) -> list[str]:
    return ["--face-model", str(place.write("faces.txt", "none"))]


def subject(*entries: str) -> Fault:
    """Entries of concepts, in place of the photo folder."""
    return lambda place: ["--images", "", *(word for entry in entries for word in ("--concepts", entry.replace("ME", str(place.photos))))]


PRIOR = "--with-prior-preservation"
OPTIONS: dict[str, Fault] = {
    "unknown device": option("--device", "gpu"),
    "no such GPU": option("--device", "cuda:7"),
    "fp16 on a CPU": option("--mixed-precision", "fp16", "--device", "cpu"),
    "graphs on a CPU": option("--cuda-graphs", "--device", "cpu"),
    "graphs with dropout": option("--cuda-graphs", "--method", "lora", "--lora-dropout", "0.1"),
    "micro_batch does not divide": option("--train-batch-size", "4", "--micro-batch", "3"),
    "warm-up longer than the run": option("--lr-scheduler", "linear", "--lr-warmup-steps", "9", "--max-train-steps", "5"),
    "warm-up longer than the steps by photos": option("--lr-scheduler", "linear", "--lr-warmup-steps", "600", "--max-train-steps", "none"),
    "LoRA options without method lora": option("--rank", "32", "--lora-layers", "to_q"),
    "polynomial from too low a rate": option("--lr-scheduler", "polynomial", "--learning-rate", "1e-8"),
    "8-bit moments of another optimizer": option("--use-8bit-adam", "--optimizer", "lion"),
    "too low a rate for prodigy": option("--optimizer", "prodigy", "--learning-rate", "1e-6"),
    "two rates for prodigy": option("--optimizer", "prodigy", "--learning-rate", "1", "--text-encoder-lr", "0.5"),
    "crop options contradict": option("--no-center-crop", "--crop-style", "face"),
    "images and concepts": option("--concepts", '{"images": "elsewhere"}'),
    "subject without images": subject('{"instance_prompt": "a cat"}'),
    "subject with an unknown key": subject('{"images": "ME", "imagess": "ME"}'),
    "subject with an option by two names": subject('{"images": "ME", "instance_data_dir": "elsewhere"}'),
    "subject with a list": subject('{"images": "ME", "class_prompt": ["a", "b"]}'),
    "subject that is no mapping": subject("[1]"),
    "class prompt is empty": option(PRIOR, "--class-prompt", ""),
    "class folder is a file": class_folder_is_a_file,
    "class folder inside a file": inside_a_file(PRIOR, "--class-data-dir"),
    "class prompt is too long": option(PRIOR, "--class-prompt", "very " * 100 + "person"),
    "dropout that cannot be repeated": option(PRIOR, "--enable-bucket", "--gradient-checkpointing", "--method", "lora",
                                              "--lora-dropout", "0.1"),
    "trigger word that no caption says": option("--trigger-word", "ohwx"),
    "one trigger word for two subjects": both(option("--trigger-word", "sks", "--identity-steps", "1"), subject('{"images": "ME"}', '{"images": "ME"}')),
    "no such LoRA layer": option("--method", "lora", "--lora-layers", "nothing"),
    "LoRA of what is not trained": option("--method", "lora", "--lora-layers", "fc1", "--no-train-text-encoder"),
    "LoRA of a text encoder that stops": option("--method", "lora", "--lora-layers", "q_proj", "--train-text-encoder",
                                                "--train-text-encoder-frac", "0.5"),
    "no such trainable layer": option("--trainable-layers", "to_nothing"),
    "trainable layers of no text encoder": option("--trainable-layers", "to_q", "--train-text-encoder"),
    "trainable layers of a LoRA": option("--method", "lora", "--trainable-layers", "to_q"),
    "overwrite and resume": option("--overwrite", "--resume-from-checkpoint", "latest"),
    "nothing to resume": option("--resume-from-checkpoint", "latest"),
    "no such checkpoint": option("--resume-from-checkpoint", "nowhere"),
    "cost without a price": option("--max-cost", "5"),
    "nobody at the metadata service": option("--preemption", "ec2", "--preemption-address", "127.0.0.1:1"),
    "metadata address that is none": option("--preemption-address", "http://127.0.0.1"),
    "no tracker beside another one": option("--report-to", "none", "--report-to", "tensorboard"),
    "tracker that is not installed": option("--report-to", "trackio"),
    "webhook without an address": option("--notify", "hooks.slack.com/services"),
    "patience without evaluation": option("--early-stop-patience", "3"),
    "network without evaluation": option("--identity-model", "face.onnx"),
    "network and classifier": option("--identity-steps", "1", "--identity-model", "face.onnx", "--identity-classifier", "c"),
    "no such network": option("--identity-steps", "1", "--identity-model", "face.onnx"),
    "network that is none": broken_network,
    "network beside an unreadable cascade": unreadable_cascade,
    "no such face model": option("--face-model", "nowhere.xml"),
    "unknown kind of face model": unknown_face_model,
    "evaluation without words for the subject": option("--identity-steps", "1", "--instance-prompt", "a photo of a person",
                                                       "--class-prompt", "a photo of a person"),
    "evaluation of a base of camera photos": option("--identity-steps", "1"),
    "classifier that lacks a key": both(rendered, classifier("{}", "--identity-steps", "1")),
    "classifier of another size": both(rendered, classifier('{"format": 1, "size": 96}', "--identity-steps", "1")),
    "classifier without figures": both(rendered, measured(lambda figures: figures["by_references"].pop("threshold"))),
    "classifier that was never measured": both(rendered, measured(lambda figures: figures["by_references"].update(threshold=0))),
    "no such classifier": both(rendered, option("--identity-steps", "1", "--identity-classifier", "nowhere")),
    "resolution does not fit the VAE": option("--resolution", "63"),
    "no bucket is left": option("--enable-bucket", "--min-bucket-reso", "640", "--max-bucket-reso", "512"),
    "prompt is too long": option("--instance-prompt", "very " * 100 + "person"),
    "weight that is not a number": option("--validation-prompt", "(a photo:1.2.3)"),
    "prompt that changes between steps": option("--validation-prompt", "[a:b:0.5]"),
    "no mask anywhere": option("--masked-loss"),
    "timesteps beyond the schedule": option("--max-timestep", "5000"),
    "no timestep is left": option("--min-timestep", "999", "--max-timestep", "500"),
    "zero terminal SNR of a base that predicts noise": option("--rescale-betas-zero-snr"),
    "no such base": option("--base", "./nowhere"),
    "base that is not in the cache": option("--base", "nobody/nothing"),
    "no such photo folder": option("--images", "nowhere"),
    "no photo folder": option("--images", ""),
    "photo folder is a file": lambda place: ["--images", str(place.write("a file", "x"))],
    "output is a file": output_is_a_file,
    "output inside a file": inside_a_file("--output"),
    "output of too long a name": option("--output", "x" * 300),
    "output in a folder called ~": option("--output", "~/run"),
    "a run is there": content("run/run.json", "{}"),
    "a run is going on": held_lock,
    "lock is a folder": content("run/run.lock/file", "x"),
}

# What the words of the command line say, before any value is looked at.
WORDS: dict[str, Fault] = {
    "unknown flag": option("--learning-rato", "1"),
    "flag that has no near name": option("--xyzzyplugh"),
    "flag of another trainer": option("--push-to-hub"),
    "short flag": option("-q"),
    "word without a flag": option("word"),
    "flag without a value": option("--seed"),
    "flag before a flag": option("--seed", "--masked-loss"),
    "flag and its denial": option("--masked-loss", "--no-masked-loss"),
    "denial with a value": option("--no-masked-loss=false"),
    "value that CLI11 refuses": option("--help=perhaps"),
    "bool that is none": option("--masked-loss=perhaps"),
    "number that is none": option("--seed", "one"),
    "number beyond 64 bits": option("--seed", "99999999999999999999"),
    "number that is not finite": option("--learning-rate", "inf"),
    "number out of range": option("--train-batch-size", "0"),
    "unknown choice": option("--method", "lorra"),
    "prompt that is not UTF-8": option("--instance-prompt", "caf\udce9"),
    "validation prompt that is not UTF-8": option("--validation-prompt", "caf\udce9"),
    "unknown filter": option("--image-interpolation-mode", "nearest"),
}


def several_ranks(**values: str) -> Fault:
    """The environment of torchrun with other values; an empty one is not set."""
    def plant(place: Place) -> list[str]:
        usual = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29999", **values}
        place.environment |= {name: value for name, value in usual.items() if value}
        return []
    return plant


def variable(name: str, value: str) -> Fault:
    """A variable of the environment."""
    def plant(place: Place) -> list[str]:
        place.environment[name] = value
        return []
    return plant


def processors(text: str) -> Fault:
    """A user's table of processors, which mixed_precision: auto reads."""
    def plant(place: Place) -> list[str]:
        place.environment["SDTUNE_PROCESSORS"] = str(place.write("processors.yaml", text))
        return ["--mixed-precision", "auto", "--device", "cpu"]
    return plant


# Of one entry, with the value that is wrong in the place of `train`.
PROCESSOR = "processors:\n  - {{vendor: A, family: 1, model: 2, isa: avx2, sample: float32, measured: x{rest}}}\n"
PROCESSORS: dict[str, Fault] = {
    "table of processors that is a list": processors("- 1\n"),
    "table of processors with an unknown key": processors("processor: []\n"),
    "table of processors that holds a text": processors("processors: none\n"),
    "processor without a format": processors(PROCESSOR.format(rest="")),
    "processor whose format is a list": processors(PROCESSOR.format(rest=", train: [float32]")),
    "processor with an unknown format": processors(PROCESSOR.format(rest=", train: float64")),
}


def srun(hosts: str) -> Fault:
    """A task of a job step on these hosts."""
    def plant(place: Place) -> list[str]:
        place.environment |= {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "1",
                              "SLURM_STEP_NODELIST": hosts}
        return []
    return plant


RANKS: dict[str, Fault] = {
    "kernels that are unknown": variable("SDTUNE_KERNELS", "fast"),
    "rank that is no number": several_ranks(RANK="first"),
    "rank beyond the others": several_ranks(RANK="2"),
    "rank without a number of ranks": several_ranks(WORLD_SIZE=""),
    "ranks without an address": several_ranks(MASTER_ADDR=""),
    "rank that contradicts SLURM's": several_ranks(SLURM_STEP_ID="0", SLURM_PROCID="1", SLURM_NTASKS="2"),
    "host list that is too long": srun("a" * 70000),
    "host list with an open bracket": srun("node[1"),
    "host list without a number": srun("node[a]"),
    "host list with a semicolon": srun("node;1"),
    "host list that is empty": srun(""),
    "host list with a long name": srun("a" * 300),
    "host list with an option": srun("-node"),
    "graphs of several ranks": both(several_ranks(), option("--cuda-graphs")),
    "ranks of a network that is not there": both(several_ranks(GLOO_SOCKET_IFNAME="nowhere0"), option("--device", "cpu")),
    "rank and a fault of the options": both(several_ranks(MASTER_PORT="none"), option("--device", "gpu")),
}


def hub(*links: tuple[str, str]) -> Fault:
    """A model of the hub's cache with links, each from a name to a target."""
    def plant(place: Place) -> list[str]:
        cache = place.folder / "cache"
        snapshot = cache / "models--org--name" / "snapshots" / "1234"
        snapshot.mkdir(parents=True)
        for name, target in links:
            (snapshot / name).symlink_to(Path(target))
        place.environment["HF_HUB_CACHE"] = str(cache)
        return ["--base", "org/name"]
    return plant


HUB: dict[str, Fault] = {
    "link of the cache to nothing": hub(("model_index.json", "../../blobs/none")),
    "link out of the cache": hub(("model_index.json", "/etc/hostname")),
    "empty snapshot": hub(),
}

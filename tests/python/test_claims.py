"""What documents, help and the container's recipe claim holds: each test failed on commit 68da9cb."""

from __future__ import annotations

import json
import re
from pathlib import Path

from program import ROOT, run

README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def sentences(text: str) -> list[str]:
    """Split at full stops and at the ends of paragraphs, with plain spaces in between."""
    parts = re.split(r"(?<=[.:])\s+(?=[-A-Z*`|])|\n\s*\n", text)
    return [" ".join(part.split()) for part in parts]


def test_no_page_denies_what_there_is() -> None:
    """LoRA and 8-bit moments have a preset and an option each."""
    helped = run(["train", "--help"]).stdout
    assert "--method" in helped and "--use-8bit-adam" in helped
    denied = [(page.name, sentence) for page in PAGES for sentence in sentences(page.read_text())
              if re.search(r"not (yet )?supported|unsupported", sentence) and re.search(r"LoRA|8-bit|use_ema", sentence)]
    assert denied == []


def test_an_option_of_train_is_no_unsupported_one_elsewhere(tmp_path: Path) -> None:
    for words in (["sample", "--use-ema", "--prompt", "a"], ["eval", "--use-ema"]):
        ended = run(words, cwd=tmp_path)
        assert ended.returncode == 2
        assert "--use-ema: unknown option" in ended.stderr and "not supported" not in ended.stderr
    assert "--push-to-hub" in (said := run(["train", "--push-to-hub"], cwd=tmp_path).stderr) and "sdtune push" in said


def test_the_reason_of_an_option_of_another_trainer_names_what_there_is(tmp_path: Path) -> None:
    """Commands and options that a refusal points to exist; none denies the network, sharding or starting ranks."""
    helped = run(["train", "--help"]).stdout
    commands = run(["--help"]).stdout
    for option in ("--push-to-hub", "--hub-token", "--fsdp", "--deepspeed"):
        said = run(["train", option], cwd=tmp_path).stderr
        assert option in said and "never uses the network" not in said and "torchrun" not in said, said
        assert all(re.search(rf"^  {name} ", commands, re.MULTILINE) for name in re.findall(r"sdtune (\w+)", said)), said
        assert "shard" not in said or "--shard" in helped


def test_architecture_says_which_room_each_python_test_is_for() -> None:
    """Each file once, and rooms that are there."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text[text.index("| room | tests/python"):], re.MULTILINE)[1:]
    named = [name for _, names in rows for name in re.findall(r"`(\w+)`", names)]
    assert sorted(named) == sorted(path.stem.removeprefix("test_") for path in (ROOT / "tests" / "python").glob("test_*.py"))
    rooms = [room for cell, _ in rows for room in cell.split(", ") if "/" in room]
    assert len(rooms) > 30 and [room for room in rooms if not (ROOT / room).is_dir()] == []


def test_architecture_names_every_part_of_the_configuration() -> None:
    header = (ROOT / "train" / "config" / "train_config.h").read_text()
    body = re.search(r"struct TrainConfig \{(.*?)\n\};", header, re.DOTALL)[1]
    parts = re.findall(r"^  \w+Options (\w+);", body, re.MULTILINE)
    assert len(parts) >= 10
    text = next(part for part in sentences((ROOT / "docs" / "architecture.md").read_text()) if "TrainConfig" in part and "dist" in part)
    assert [part for part in parts if not re.search(rf"\b{part}\b", text)] == []


def test_fuzzers_are_claimed_only_where_there_are_some() -> None:
    claimed = [page.name for page in PAGES if re.search(r"\bfuzz", page.read_text(), re.IGNORECASE)]
    sources = [path for folder in ("tests", "scripts", "cmake") for path in (ROOT / folder).rglob("*")
               if path.suffix in (".cpp", ".cmake", ".sh", ".txt") and "LLVMFuzzerTestOneInput" in path.read_text(errors="replace")]
    assert not claimed or sources, claimed


def test_equal_bytes_are_claimed_of_cpus_alone() -> None:
    claims = [sentence for sentence in sentences(README) if re.search(r"same to the byte|byte-equal|same bytes", sentence)]
    assert claims and all("CPU" in claim for claim in claims), claims


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_claims_of_speed_name_processors_and_are_those_of_the_page() -> None:
    """docs/performance.md is made of the measurements; README has every kind of processor of it, and no speed beside its table."""
    best = (ROOT / "docs" / "performance.md").read_text().split("## Both in float32")[0]
    names = {"UNet forward pass, SD 1.5": "UNet forward, SD 1.5 size, batch 1", "UNet forward pass, 10 M": "UNet forward, 10 M, batch 4",
             "VAE decode": "VAE decode, 512", "VAE encode": "VAE encode, 512", "training step, 10 M": "training step, 10 M, batch 4",
             "training step, SD 1.5": "training step, SD 1.5", "LoRA training step": "LoRA step", "image of SD 1.5": "an image at SD 1.5's size"}
    page = [cells_of(line) for line in best.splitlines() if line.startswith("|")]
    section = README.split("## Speed, by processor")[1].split("\n## ")[0]
    heads, *rows = [cells_of(line) for line in section.splitlines() if line.startswith("|")]
    assert heads[1:] == page[0][1:] and len(heads) > 3
    for name, of_page in names.items():
        (claimed,) = [row[1:] for row in rows if row[0].startswith(name)]
        (measured,) = [row[1:] for row in page if row[0].startswith(of_page)]
        assert [cell.split()[0] for cell in claimed] == [cell.split()[0] for cell in measured], name
    assert [sentence for sentence in sentences(README) if re.search(r"\d times as (fast|quick)", sentence)] == []
    assert "**0." not in section.split("peak memory")[0] or any("behind" in sentence for sentence in sentences(README))


def test_the_container_has_pillow_and_libheif() -> None:
    """The wheel's extra `images` is Pillow, without which pipe(prompt) has nothing to return; test_container.py uses both."""
    recipe = (ROOT / "scripts" / "docker" / "Dockerfile").read_text()
    system = re.search(r"^FROM \S+ AS system$(.*?)^FROM ", recipe, re.MULTILINE | re.DOTALL)
    assert system and re.search(r"apt-get install [^&]*\blibheif1\b", system[1])
    assert re.search(r"^FROM system AS runtime$", recipe, re.MULTILINE) and re.search(r"^FROM system AS workbench$", recipe, re.MULTILINE)
    assert "-r requirements/images.txt" in recipe and re.search(r"^pillow==", (ROOT / "requirements/images.txt").read_text(), re.MULTILINE)
    extras = re.search(r"^images = (\[.*\])", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.IGNORECASE)
    assert extras and "pillow" in extras[1].lower()


def test_likeness_describes_every_figure_of_eval() -> None:
    """Those of scores.h, and nothing that is none."""
    names = re.findall(r'inline constexpr const char\* k\w+ = "(\w+)";', (ROOT / "train/portrait/evaluate/scores.h").read_text())
    bands = re.search(r"kBandNames = \{(.*?)\}", (ROOT / "train/portrait/evaluate/face_sharpness.h").read_text())[1]
    figures = {name for name in names if not name.endswith("_")} | {f"sharpness_{band}" for band in re.findall(r'"(\w+)"', bands)}
    section = (ROOT / "docs" / "likeness.md").read_text().split("## The figures of sdtune eval")[1].split("\n## ")[0]
    cells = [cells_of(line)[0] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(figures)
    assert "docs/likeness.md says what the figures are" in (ROOT / "python/sdtune/_evaluation_report.py").read_text()


def test_readme_has_the_intervals_of_the_record() -> None:
    """Student's t over ten people, as the card says; the first cell of each row is the tuned model's."""
    record = json.loads((ROOT / "docs/measurements/portrait-128_subjects_cpu.json").read_text())["summary"]
    names = {"likeness: 0 as": "subject fidelity", "TAR at FAR": "accepted", "hair, beard and skin": "attribute match", "what the prompt asks": "prompt fidelity",
             "near copies": "copied", "class images accepted": "leak", "variety of the class": "diversity kept"}
    rows = [cells_of(line) for line in README.splitlines() if line.startswith("|")]
    for begin, name in names.items():
        (cell,) = [row[1] for row in rows if row[0].startswith(begin)]
        low, high = record[name]["interval"]
        assert cell == f"{record[name]['mean']:.2f} ± {(high - low) / 2:.2f}", name
    (marks,) = [row[1] for row in rows if row[0].startswith("marks that the person has")]
    low, high = record["marks that the person has"]["interval"]
    assert marks == f"{record['marks that the person has']['mean']:.2f} ({low:.2f} to {high:g})"

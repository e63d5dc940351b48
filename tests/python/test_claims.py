"""What documents, help and the container's recipe claim holds: each test failed on commit 68da9cb."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from program import ROOT, run

sys.path.insert(0, str(ROOT / "scripts"))

import bench.environment  # noqa: E402
import eval_table  # noqa: E402
import make_performance_table  # noqa: E402
import model_card  # noqa: E402

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


def test_the_container_looks_for_the_driver_where_gke_puts_it() -> None:
    """Its nodes mount libcuda.so.1 into /usr/local/nvidia/lib64 and have no runtime of NVIDIA's; ssh sessions ask sshd for their variables."""
    recipe = (ROOT / "scripts" / "docker" / "Dockerfile").read_text()
    system = re.search(r"^FROM \S+ AS system$(.*?)^FROM ", recipe, re.MULTILINE | re.DOTALL)
    assert system and re.search(r"^ENV .*\bLD_LIBRARY_PATH=/usr/local/nvidia/lib64$", system[1], re.MULTILINE)
    assert re.search(r"^SetEnv .*\bLD_LIBRARY_PATH=", (ROOT / "scripts/docker/start.sh").read_text(), re.MULTILINE)
    assert "/usr/local/nvidia/lib64" in (ROOT / "docs" / "container.md").read_text()


def test_likeness_describes_every_figure_of_eval() -> None:
    """Those of scores.h, and nothing that is none."""
    names = re.findall(r'inline constexpr const char\* k\w+ = "(\w+)";', (ROOT / "train/portrait/evaluate/scores.h").read_text())
    bands = re.search(r"kBandNames = \{(.*?)\}", (ROOT / "train/portrait/evaluate/face_sharpness.h").read_text())[1]
    figures = {name for name in names if not name.endswith("_")} | {f"sharpness_{band}" for band in re.findall(r'"(\w+)"', bands)}
    section = (ROOT / "docs" / "likeness.md").read_text().split("## The figures of sdtune eval")[1].split("\n## ")[0]
    cells = [cells_of(line)[0] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(figures)
    assert "docs/likeness.md says what the figures are" in (ROOT / "python/sdtune/_evaluation_report.py").read_text()


def measured_cell(entry: dict) -> str:
    """A mean of the record as README has it: alone, with half its interval, or with its ends where those of a share are bounded."""
    mean, (low, high) = entry["mean"], entry["interval"]
    if f"{low:.2f}" == f"{high:.2f}":
        return f"{mean:.2f}"
    ends = [f"{end:g}" if end in (0, 1) else f"{end:.2f}" for end in (low, high)]
    return f"{mean:.2f} ({ends[0]} to {ends[1]})" if low == 0 or high == 1 else f"{mean:.2f} ± {(high - low) / 2:.2f}"


def test_readme_has_the_intervals_of_the_record() -> None:
    """Student's t over ten people, as the card says; each cell that the record has, of which eval_table.py names every one."""
    record = json.loads((ROOT / "docs/measurements/portrait-128_subjects_cpu.json").read_text())["summary"]
    names = {"likeness: 0 as": "subject fidelity", "TAR at FAR": "accepted", "hair, beard and skin": "attribute match", "what the prompt asks": "prompt fidelity",
             "near copies": "copied", "class images accepted": "leak", "marks that the person has": "marks", "variety of the class": "diversity kept"}
    table = README.split("## Two commands")[0]
    (_, *columns), _, *rows = [cells_of(line) for line in table.splitlines() if line.startswith("|")]
    assert columns == ["tuned", "base", "shuffled photos", "renders of the person"]
    known, found = {column.name for column in eval_table.COLUMNS}, set()
    for begin, name in names.items():
        (cells,) = [row[1:] for row in rows if row[0].startswith(begin)]
        tuned = "marks that the person has" if name == "marks" else name
        figures = [tuned, f"{name}, base", f"{name}, shuffled", f"{name}, renders"]
        for figure, cell in zip(figures, cells, strict=True):
            assert cell in ("-", "1") or figure in known, f"{figure}: eval_table.py does not record it"
            if figure in record:
                assert cell == measured_cell(record[figure]), figure
                found.add(figure)
    assert {*names.values(), "accepted, base", "accepted, shuffled", "marks, renders"} - {"marks"} <= found


def test_readme_warns_of_marks_as_the_card_does() -> None:
    """Where they were measured before hidden ones were left out."""
    caveat, readme = " ".join(model_card.BASES["portrait-128"].marks.split()), " ".join(README.split())
    assert caveat in readme and ("figures of marks count a mark under a hat" in readme) == bool(caveat)


def files_of_speed() -> list[tuple[str, str, dict]]:
    """Row, processor and file of each measurement of docs/performance.md."""
    return [(row, processor, measured) for row, found in make_performance_table.read_all().items() for processor, measured in found.items()]


def test_rows_whose_results_were_not_compared_are_marked() -> None:
    """Files of trainings, whole commands and stable-diffusion.cpp have no relative_errors."""
    for row, processor, measured in files_of_speed():
        for figure in make_performance_table.figures(measured).values():
            assert ("†" not in figure.cell()) == ("relative_errors" in measured) == ("†" not in figure.summary()), (row, processor)
    page = (ROOT / "docs" / "performance.md").read_text()
    bare = [row for row in ("train_sd15_b1", "lora_sd15_b1", "start", "checkpoint", "peer") for line in page.splitlines()
            if line.startswith(f"| {make_performance_table.ROWS[row]} |") and " in " in line and "†" not in line]
    assert bare == []
    for text in (README, page, (ROOT / "scripts" / "bench.py").read_text()):
        assert "after their results were compared" not in " ".join(text.split())
    assert all("†: the results of both sides were not compared before they were timed" in " ".join(text.split()) for text in (README, page))


def test_nothing_is_at_its_best_of_one_configuration() -> None:
    several = [(row, processor) for row, processor, measured in files_of_speed() if "each_at_its_best" in make_performance_table.figures(measured)]
    assert {row for row, _ in several} >= {"forward_sd15_b1", "train_sd15_b1", "start", "class-images"}
    assert not {"peer", "checkpoint", "export", "import", "start-before", "dreambooth-before"} & {row for row, _ in several}
    best = (ROOT / "docs" / "performance.md").read_text().split("## Each at its best")[1].split("\n## ")[0]
    assert "stable-diffusion.cpp" not in best and "configuration of stable-diffusion.cpp" in README
    pair = {"ours": "bfloat16", "theirs": "float16", "ratio": 2.0, "ratio_min": 1.5, "ratio_max": 2.5, "ours_s": [1.0]}
    two = {"float16": 1.0, "float32": 2.0}
    assert list(make_performance_table.figures({"each_at_its_best": pair})) == ["one_configuration"]
    assert list(make_performance_table.figures({"each_at_its_best": pair, "candidates_s": {"theirs": two}})) == ["each_at_its_best"]


def test_rounds_that_disagree_on_which_side_is_faster_have_their_range() -> None:
    section = README.split("## Speed, by processor")[1].split("\n## ")[0]
    heads, *rows = [cells_of(line) for line in section.splitlines() if line.startswith("|")]
    for begin, row, pair in (("checkpoint", "checkpoint", "one_configuration"), ("`save_pretrained`", "export", "one_configuration"),
                             ("UNet forward pass, SD 1.5", "forward_sd15_b1", "each_at_its_best"), ("training step, SD 1.5", "train_sd15_b1", "each_at_its_best")):
        (cells,) = [cells for cells in rows if cells[0].startswith(begin)]
        for processor, measured in make_performance_table.read_all()[row].items():
            figure, cell = make_performance_table.figures(measured)[pair], cells[heads.index(processor)]
            assert (f"({figure.least:.2f} to {figure.most:.2f})" in cell) == (figure.least < 1 < figure.most), (begin, processor)


def test_rows_of_diffusers_without_its_settings_of_memory_are_named() -> None:
    """By the key that is missing; files without it are read as plain."""
    with_key = {"each_at_its_best": {"environment": "memory settings", "ours": "float32", "theirs": "float32, contiguous", "ratio": 1.5, "ratio_min": 1.2,
                                     "ratio_max": 1.8, "ours_s": [1.0, 1.0]}, "candidates_s": {"theirs": {"a": 1, "b": 2}}}
    without = json.loads(json.dumps(with_key))
    del without["each_at_its_best"]["environment"]
    assert make_performance_table.PLAIN == bench.environment.PLAIN and "memory settings" in bench.environment.ENVIRONMENTS
    (tried,), (untried,) = (make_performance_table.figures(measured).values() for measured in (with_key, without))
    assert tried.cell().endswith("float32, float32 with memory settings)") and untried.cell().endswith("float32, float32)")
    named = make_performance_table.without_environments
    assert named({"text": {"A": with_key}}) == "" and named({"text": {"A": without}, "peer": {"A": without}}) == "every row against diffusers"
    assert named({"text": {"A": with_key, "B": without}, "encode": {"A": without}, "peer": {"A": without}}) == \
        f"on A: {make_performance_table.ROWS['encode']}; on B: all"
    said = [" ".join(text.split()) for text in (README, (ROOT / "docs" / "performance.md").read_text())]
    assert all("diffusers is timed with glibc's defaults and with the settings of memory that serve every LibTorch process" in text for text in said)
    if (rest := named(make_performance_table.read_all())):
        assert f"with glibc's defaults alone: {rest}." in said[1] and "measured before that, with glibc's defaults alone: " in said[0]


@pytest.mark.parametrize(("since", "mark"), [(None, ""), ("first step", "°")])
def test_a_training_s_peak_says_from_when_it_counts(since: str | None, mark: str) -> None:
    pair = {"ours": "float32", "theirs": "float32", "ratio": 1.5, "ratio_min": 1.2, "ratio_max": 1.8, "ours_s": [1.0], "peak_memory_gib_ours": 1.0,
            "peak_memory_gib_theirs": 2.0, **({"peak_memory_since": since} if since else {})}
    measured = {"each_at_its_best": pair, "candidates_s": {"theirs": {"a": 1, "b": 2}}}
    assert make_performance_table.memory_cell(measured) == f"0.50{mark}"
    assert "peak memory of a training process, from its start" in README and "peak memory of a training step" not in README


def test_what_bounded_waiting_costs_and_brings_is_that_of_the_record() -> None:
    rows = json.loads((ROOT / "docs/measurements/side_by_side_cpu.json").read_text())["rows"]
    by_case = {(row["trainings"], row["spin"]): row for row in rows}
    text = " ".join(README[README.index("**Beside others.**"):].split("\n\n")[0].split())
    assert f"two side by side then take {by_case[2, 'bounded']['times_alone']:.1f} times as long as one alone, and three {by_case[3, 'bounded']['times_alone']:.1f} times" in text
    assert f"one alone takes {by_case[1, 'bounded']['seconds']:.2f} s where it takes {by_case[1, 'unbounded']['seconds']:.2f} s unbounded" in text
    assert "four times" not in text or (2, "unbounded") in by_case


def test_the_time_with_cuda_graphs_names_the_load_beside_it() -> None:
    record = json.loads((ROOT / "docs/measurements/train_graphs_h200.json").read_text())
    assert "13 threads rendered beside it" in record["command"]
    for page in (ROOT / "docs" / "gpu.md", ROOT / "CHANGELOG.md"):
        claims = [sentence for sentence in sentences(page.read_text()) if "a tenth of the time" in sentence and "H200" in sentence]
        assert claims and all("13 threads" in claim for claim in claims), page.name
    assert "an NVIDIA H200, for eleven minutes and a day later for fifteen" in (ROOT / "docs/gpu.md").read_text()
    assert "15 minutes of an H200" in (ROOT / "docs/portrait_base.md").read_text()


def test_a_card_says_with_which_flags_its_figures_were_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """settings.json of scripts/eval_subjects.sh has them: figures of --quick were recorded as those of the plain command."""
    monkeypatch.setattr(model_card, "RECORDS", tmp_path)
    (tmp_path / "eval_subjects.json").write_text('{"summary": {}}')
    (tmp_path / "eval_subjects.md").write_text("")
    base = model_card.BASES["portrait-64"]

    def recorded(**settings: str) -> str:
        (tmp_path / "settings.json").write_text(json.dumps({"eval_flags": "", "train_flags": "", "judge": "", **settings}))
        model_card.record_subjects(base, tmp_path, "a machine")
        return json.loads(base.record("subjects").read_text())["command"]

    assert recorded(base="portrait-128") == "scripts/eval_subjects.sh"
    assert recorded(base="portrait-64", eval_flags="--quick") == "EVAL_FLAGS=--quick BASE=portrait-64 scripts/eval_subjects.sh"
    assert recorded(base="portrait-128", train_flags="--seed 3") == "TRAIN_FLAGS='--seed 3' scripts/eval_subjects.sh"
    (tmp_path / "settings.json").unlink()
    with pytest.raises(SystemExit, match="not known"):
        model_card.record_subjects(base, tmp_path, "a machine")


def test_likeness_says_which_intervals_are_students() -> None:
    section = " ".join((ROOT / "docs" / "likeness.md").read_text().split("## The figures of sdtune eval")[1].split("\n## ")[0].split())
    assert "Intervals of shares are Wilson's" in section and "Student's t of n - 1 degrees of freedom" in section
    assert "`attribute_match` and `marks_match` are the means of their parts' ends" in section
    assert "student(n - 1)" in (ROOT / "train/portrait/evaluate/estimate.cpp").read_text()


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Cells of the first table behind the heading."""
    lines = (ROOT / "docs" / page).read_text().split(heading)[1].split("\n## ")[0].splitlines()
    return [cells_of(line) for line in lines if line.startswith("| ")]


def test_likeness_compares_best_and_last_as_the_record_does() -> None:
    """A likeness of 0.925 stood there as 0.92."""
    summary = json.loads((ROOT / "docs/measurements/best_portrait-64_cpu.json").read_text())["summary"]
    rows = rows_of("likeness.md", "## Is the best step better than the last?")[1:]
    for row, name in zip(rows, ("subject_fidelity + prompt_fidelity", "subject_fidelity", "prompt_fidelity"), strict=True):
        entry = summary[name]
        low, high = entry["interval"]
        assert row[1:] == [f"{entry['best']:.2f}", f"{entry['last']:.2f}", f"{entry['difference']:+.3f} ({low:+.3f} to {high:+.3f})"], name


def test_likeness_s_table_of_near_copies_is_of_five_people() -> None:
    """Those that all three recipes were measured on: the last one's mean of six stood beside means of five."""
    record = json.loads((ROOT / "docs/measurements/portrait-128_recipes_cpu.json").read_text())
    explored = [*record["explored"]["recipes"], *record["explored further"]["recipes"]]
    names = ["the defaults, 450 steps", "--dco-beta 10 --max-train-steps 450", "--dco-beta 10 --max-train-steps 700"]
    people, rows = (20, 24, 25, 26, 28), rows_of("likeness.md", "## Overfitting: near copies of the photos")[1:]
    for row, name in zip(rows, names, strict=True):
        measured = next(recipe for recipe in explored if recipe["options"] == name)["subjects"]
        assert {one["subject"] for one in measured} >= set(people), name
        for cell, figure in zip(row[1:], ("subject fidelity", "copied", "leak", "prompt fidelity"), strict=True):
            mean = sum(one[figure] for one in measured if one["subject"] in people) / len(people)
            assert abs(float(cell) - mean) <= 0.0051, (name, figure, mean)


def test_what_noise_in_the_sampler_costs_is_that_of_the_records() -> None:
    text = " ".join((ROOT / "docs/portrait_base.md").read_text().split("## Which sampler")[1].split())
    noisy, own = (json.loads((ROOT / f"docs/measurements/portrait-64_figures_{name}.json").read_text())["figures"]["prompts"]
                  for name in ("sde_cpu", "cpu"))
    for head, words in (("clothes_color", "of the clothes' colours"), ("hat_color", "of the hats'"), ("place", "of the places")):
        assert f"{noisy['heads'][head]:.1%} {words} instead of {own['heads'][head]:.1%}".replace("%", " %") in text, head
    beards = [model_card.share_of(prompts["classes"]["facial_hair"], ["goatee", "moustache"]) for prompts in (noisy, own)]
    assert "{:.1%} of goatees and moustaches instead of {:.1%}".format(*beards).replace("%", " %") in text


def test_a_card_has_the_stage_of_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """portrait-128's first one, in a folder of its own."""
    monkeypatch.setattr(model_card, "RECORDS", tmp_path)
    base, run_folder = model_card.BASES["portrait-128"], tmp_path / "run"
    base.record("training").write_text(json.dumps({"machine": "", "commands": [], "stages": [], "tried": "nothing"}))
    for folder in ("features", "vae", "judge", "text", "base"):
        (run_folder / folder).mkdir(parents=True)
        (run_folder / folder / "metrics.jsonl").write_text(json.dumps({"step": 2, "samples": 8, "pictures_per_s": 4.0}) + "\n")
    (run_folder / "command.txt").write_text("sdtune pretrain\n")
    model_card.record_run(base, run_folder, "a machine", None)
    stages = [one["stage"] for one in json.loads(base.record("training").read_text())["stages"]]
    assert stages == ["`features`", "`vae`", "`judge`", "`text`", "`base`"]


def test_the_runs_of_readme_do_not_meet() -> None:
    """A folder with a run in it is refused, and scripts/demo.sh deletes what is in its own: it and both trainings of the page had runs/me."""
    folders = [re.search(r"^run=\$\{1:-(\S+)\}$", (ROOT / "scripts/demo.sh").read_text(), re.MULTILINE)[1]]
    for line in re.findall(r"^\.venv/bin/sdtune train .*$", README, re.MULTILINE):
        words = shlex.split(line, comments=True)
        folders.append(words[words.index("--output") + 1] if "--output" in words else f"runs/{Path(words[words.index('--images') + 1]).name}")
    for code in re.findall(r"^config = sdtune\.TrainConfig\(.*\)$", README, re.MULTILINE):
        output, images = re.search(r'output="([^"]+)"', code), re.search(r'images="([^"]+)"', code)
        folders.append(output[1] if output else f"runs/{images[1]}")
    assert len(folders) >= 4 and len(set(folders)) == len(folders), folders


def test_pages_let_the_doctor_know_for_which_base_the_photos_are() -> None:
    """Without one it takes the bundled base, for whose 128 px nearly every photo of a camera is large enough."""
    pages = [page for page in PAGES if page.name != "reference.md"]
    told = [(page.name, line) for page in pages for line in page.read_text().splitlines() if "sdtune doctor --images" in line]
    assert len(told) >= 4 and [place for place in told if "--base" not in place[1] and "--resolution" not in place[1]] == []


def test_the_page_of_push_says_what_a_lora_s_header_takes_along() -> None:
    """Captions by their parts and the photos' folder, which the page said stay here."""
    header = (ROOT / "train/run/lora_metadata.cpp").read_text()
    page = (ROOT / "docs" / "hub.md").read_text().split("## Push")[1].split("\n## ")[0]
    assert 'metadata["ss_tag_frequency"]' in header and "`ss_tag_frequency`" in page and "photos' folder" in " ".join(page.split())


def test_what_is_brought_home_is_in_every_run() -> None:
    """rsync fails for a name that is not there, and samples/ is not where no --validation-prompt is given."""
    line = next(line for line in (ROOT / "docs" / "cloud.md").read_text().splitlines() if "rsync -a machine:" in line)
    names = re.findall(r"machine:runs/me/(\S+)", line)
    assert "model" in names and set(names) <= {"model", "report.html", "run.json", "metrics.jsonl", "config.yaml"}, line

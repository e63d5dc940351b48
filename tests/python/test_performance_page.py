"""README's table of speed and docs/performance.md say what is unequal between the sides, and what was not tried."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from program import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import make_performance_table  # noqa: E402

README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "performance.md").read_text()


def files_of_speed() -> list[tuple[str, str, dict]]:
    """Row, processor and file of each measurement."""
    return [(row, processor, measured) for row, found in make_performance_table.read_all().items() for processor, measured in found.items()]


def test_what_older_measurements_did_not_try_is_named() -> None:
    """Of the Xeon's, "each at its best", sdtune ran in float32 alone."""
    pair = {"ours": "float32", "theirs": "float32", "ratio": 1.5, "ratio_min": 1.2, "ratio_max": 1.8, "ours_s": [1.0]}
    layouts = {"float32, contiguous": 1, "float32, channels_last": 2}
    new = {"each_at_its_best": pair, "candidates_s": {"theirs": {**layouts, "bfloat16, contiguous": 3}}}
    ended = {"each_at_its_best": pair, "candidates_s": {"theirs": layouts}, "ended_after_s": {"theirs, bfloat16, contiguous": 9.0}}
    old = {**pair, "diffusers_best": "float32", "diffusers_candidates_s": layouts}
    untried, name = make_performance_table.untried, make_performance_table.ROWS["text"]
    assert untried({"text": {"A": new, "B": ended}, "peer": {"A": {"each_at_its_best": pair}}}) == ""
    assert " ".join(untried({"text": {"A": new, "B": old}}).split()) == \
        f"Not tried in older measurements: diffusers' bfloat16 on B: {name}; sdtune's bfloat16 on B: {name}."
    of_contiguous = {"each_at_its_best": pair, "candidates_s": {"theirs": {"float32": 1, "bfloat16": 2}}}
    assert untried({"text": {"A": of_contiguous}}) == f"Not tried in older measurements: diffusers' channels_last on A: {name}."
    if (said := untried(make_performance_table.read_all())):
        assert said in PAGE


def test_the_page_has_the_notes_of_its_files() -> None:
    assert [(row, processor) for row, processor, measured in files_of_speed() if measured.get("note", "") not in PAGE] == []
    assert make_performance_table.notes({"text": {"A": {}}}) == []


def test_readme_names_single_figures_that_are_not_of_float32() -> None:
    """It said of every one that both are fastest in float32, or that one configuration was tried."""
    single = {row for row, _, measured in files_of_speed() if row in {one for one, pair, _ in make_performance_table.SUMMARY if pair is None}
              and (best := make_performance_table.figures(measured).get("each_at_its_best")) and "both_float32" not in measured
              and "bfloat16" in best.ours + best.theirs}
    assert single == {"picture_sd15", "start"}
    text = " ".join(README.split("## Speed, by processor")[1].split())
    assert "the second was not measured, as of an image of SD 1.5, of one from the command to the file and beside torch.compile" in text


def test_readme_s_memory_is_not_that_of_trainings_alone() -> None:
    """Of images it is where sdtune takes more than diffusers."""
    lines = [line.strip().strip("|").split("|") for line in README.split("**peak memory")[1].splitlines() if line.startswith("|")]
    rows = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}
    for row, name in make_performance_table.SUMMARY_OF_MEMORY:
        figures = [figure for measured in make_performance_table.read_all()[row].values()
                   if (figure := make_performance_table.figures(measured).get("each_at_its_best")) and figure.peak]
        assert sorted(cell.rstrip("°") for cell in rows[name] if cell != "-") == sorted(f"{one.peak[0] / one.peak[1]:.2f}" for one in figures), name
    assert {"picture_sd15", "vae-decode", "picture"} <= {row for row, _ in make_performance_table.SUMMARY_OF_MEMORY}


def test_a_measurement_on_another_number_of_cores_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages say two of all of them."""
    assert {measured["machine"]["cores"] for _, _, measured in files_of_speed()} == {2} and "on two cores of one machine" in PAGE
    measured = json.loads((ROOT / "docs/measurements/speed/text_epyc26.json").read_text())
    measured["machine"]["cores"] = 8
    (tmp_path / "text_other.json").write_text(json.dumps(measured))
    monkeypatch.setattr(make_performance_table, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="text_other.json: is of 8 cores"):
        make_performance_table.read_all()


def test_pages_name_the_versions() -> None:
    for text in (README, PAGE):
        assert make_performance_table.versions(make_performance_table.read_all()) in " ".join(text.split())


def test_models_that_were_not_timed_are_named() -> None:
    timed = " ".join([*make_performance_table.ROWS.values(), *(measured["command"] for _, _, measured in files_of_speed())])
    assert not re.search("sdxl|sd21|SD 2", timed, re.IGNORECASE)
    for text in (README, PAGE):
        assert "SD 2.x and SDXL were not timed" in " ".join(text.split())


def test_the_row_against_an_older_training_has_both_numbers_of_steps() -> None:
    """650 became 400, which is most of the ratio."""
    now = re.search(r"^max_train_steps: (\d+)", (ROOT / "models/portrait-64/sdtune_defaults.yaml").read_text(), re.MULTILINE)[1]
    assert f"with defaults of {now} steps, against the program of 68da9cb and its defaults of 650" in make_performance_table.ROWS["dreambooth-before"]


def test_pages_say_that_sdtune_encodes_a_shared_caption_once() -> None:
    """In the steps that train the text encoder the two sides do not do the same (train/run/step_inputs.cpp)."""
    assert "encodes_each_once" in (ROOT / "train" / "run" / "step_inputs.cpp").read_text()
    assert "context = text_encoder(ids)[0]" in (ROOT / "scripts" / "bench" / "diffusers_loop.py").read_text()
    for text in (README, PAGE):
        assert "sdtune encodes a caption that samples" in " ".join(text.split())

#!/usr/bin/env python3
"""Writes docs/performance.md of what scripts/bench.py measured, docs/measurements/speed/*.json, a column a kind of processor, and
docs/measurements/growth.json; and the table in README.md, which has some of the rows.

    scripts/make_performance_table.py [--check]      --check: writes nothing; exit 1 where a page says otherwise

A measurement on a kind that has none yet is a file more; one that is made again takes the place of the older file of its kind.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "measurements" / "speed"
GROWTH = ROOT / "docs" / "measurements" / "growth.json"
PAGE = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"
HEAD = """# Speed, by kind of processor

Written by `scripts/make_performance_table.py` of [measurements/speed](measurements/speed), which `scripts/bench.py` measured: processes of
sdtune and of diffusers take turns on two cores of one machine. A ratio is the median of neighbouring rounds; **above 1
sdtune is faster**, and what is below is bold. In parentheses the least and the most of so many rounds, and the number formats of sdtune and of diffusers. A
dash: not measured on that kind. †: the results of both sides were not compared before they were timed, as those of the other rows were; what training steps,
whole commands and stable-diffusion.cpp compute is compared by the tests (tests/python).
In the training steps with a base's defaults, which train the text encoder too, sdtune encodes a caption that samples of the step share once;
diffusers' loop (scripts/bench/diffusers_loop.py) encodes each sample's, as train_dreambooth.py does. SD 2.x and SDXL were not timed.
"""
NEXT = """
## Measure yours
`scripts/bench.py forward --model sd15 --output FILE.json`, likewise its other works (`--help`
lists them), on a machine that does nothing else; the files into docs/measurements/speed, named as those there; then
`scripts/make_performance_table.py`.
"""
# The start of a file's name, and what the row is called. In the order of the page.
ROWS = {
    "forward_sd15_b1": "UNet forward, SD 1.5 size, batch 1", "forward_10m_b4": "UNet forward, 10 M, batch 4",
    "forward_10m_b8": "UNet forward, 10 M, batch 8",
    "vae-decode": "VAE decode, 512 px, first call included", "vae-encode": "VAE encode, 512 px, first call included",
    "text": "text encoder of SD 1.5", "picture_sd15": "an image at SD 1.5's size, 512 px, 25 steps with guidance",
    "picture": "an image of portrait-64, 30 steps with guidance",
    "train_sd15_b1": "training step, SD 1.5 size, batch 1", "train_10m_b4": "training step, 10 M, batch 4",
    "train_10m_b8": "training step, 10 M, batch 8", "train_portrait-64": "training step, defaults of portrait-64",
    "train_portrait-128": "training step, defaults of portrait-128",
    "lora_sd15_b1": "LoRA step, SD 1.5 size, batch 1, against PEFT",
    "class-images": "32 class images of portrait-64 generated and encoded, a whole command",
    "encode": "20 photos of 512 px encoded at SD 1.5's size, a whole command",
    "checkpoint": "a checkpoint at SD 1.5's size until the disk has it, float32; sdtune's is hashed and read back too",
    "export": "save_pretrained at SD 1.5's size until the disk has it, float32",
    "start": "an image of portrait-64, a whole command",
    "start-before": "an image of portrait-64, a whole command, against the program of 68da9cb",
    "dreambooth-before": "DreamBooth of portrait-64, a whole command with defaults of 400 steps, against the program of 68da9cb and its "
                         "defaults of 650",
    "import": "import sdtune, and diffusers' pipeline",
    "peer": "sampling step with guidance, SD 1.5 size, 512 px, against stable-diffusion.cpp",
}
CORES = 2  # of each machine, as the pages say
PLAIN = "plain"  # glibc's defaults (bench/environment.py); files without an environment were measured so
OWN_BATCH = {"10m": 8, "sd15": 1}  # what bench.py takes without --batch (bench/models.py, whose packages this script does without)
PAIRS = {"each_at_its_best": "Each at its best", "both_float32": "Both in float32",
         "against_compiled": "Each at its best, diffusers under torch.compile, whose compilation is not counted",
         "one_configuration": "One configuration of each: the other side was tried in no other number format or layout"}
NOT_COMPARED = "†"  # bench.py compared no results before the rounds
SINCE_FIRST_STEP = "°"  # a training's peak memory without its start
OTHERS = ("peer", "start-before", "dreambooth-before")  # rows whose other side is not diffusers

# README's rows: the row's name here, the pair, and what it is called there. Without a pair: each at its best, then both in float32.
SUMMARY = (
    ("forward_sd15_b1", None, "UNet forward pass, SD 1.5"),
    ("forward_10m_b4", None, "UNet forward pass, 10 M parameters, 4 images"),
    ("forward_10m_b4", "against_compiled", "the same, diffusers under torch.compile, its compilation not counted"),
    ("vae-decode", None, "VAE decode, 512 px"), ("vae-encode", None, "VAE encode, 512 px"),
    ("picture_sd15", None, "image of SD 1.5, 512 px, 25 steps with guidance"),
    ("picture", None, "image of portrait-64, 30 steps with guidance"),
    ("start", None, "the same from the command to the file, diffusers' import of seconds included"),
    ("train_sd15_b1", None, "training step, SD 1.5"),
    ("lora_sd15_b1", None, "LoRA training step, SD 1.5, against PEFT"),
    ("train_10m_b4", None, "training step, 10 M parameters, 4 images"),
    ("train_portrait-128", None, "training step, portrait-128's defaults"),
    ("train_portrait-64", None, "training step, portrait-64's defaults"),
    ("checkpoint", None, "checkpoint, SD 1.5; sdtune's is hashed and read back too"),
    ("export", None, "`save_pretrained`, SD 1.5; sdtune's is read back too"),
    ("peer", None, "sampling step, SD 1.5, 512 px, against one configuration of stable-diffusion.cpp, without BLAS"),
)
SUMMARY_OF_MEMORY = (
    ("train_sd15_b1", "SD 1.5"), ("lora_sd15_b1", "LoRA, SD 1.5"), ("train_10m_b4", "10 M parameters"),
    ("picture_sd15", "an image of SD 1.5, 512 px"), ("vae-decode", "an image of 512 px, decoded"), ("picture", "an image of portrait-64"),
)
SUMMARY_BEGINS, SUMMARY_ENDS = "<!-- written by scripts/make_performance_table.py -->\n", "<!-- until here -->\n"


@dataclass(frozen=True)
class Figure:
    """One pair of sides of one file."""

    ours: str
    theirs: str
    ratio: float
    least: float
    most: float
    peak: tuple[float, float] | None  # GiB
    rounds: int
    is_compared: bool  # the results, before the rounds
    environment: str  # of diffusers' processes
    since: str  # when the peak began to count

    def marked(self) -> str:
        """Bold where sdtune is behind."""
        ratio = f"{self.ratio:.2f}" if self.ratio >= 1 else f"**{self.ratio:.2f}**"
        return ratio + ("" if self.is_compared else NOT_COMPARED)

    def cell(self) -> str:
        formats = f"{short(self.ours)}, {short(self.theirs)}" + (f" with {self.environment}" if self.environment != PLAIN else "")
        return f"{self.marked()} ({self.least:.2f} to {self.most:.2f} in {self.rounds}; {formats})"

    def summary(self) -> str:
        """README's: with the range where the rounds do not agree on which side is faster."""
        return self.marked() + (f" ({self.least:.2f} to {self.most:.2f})" if self.least < 1 < self.most else "")

    def peak_mark(self) -> str:
        return SINCE_FIRST_STEP if self.since == "first step" else ""


def short(candidate: str) -> str:
    """float32, contiguous -> float32; the layout is in the file."""
    return candidate.split(",")[0].replace("bfloat16", "bf16")


def figure_of(pair: dict[str, object], is_compared: bool) -> Figure:
    peaks = pair.get("peak_memory_gib_ours"), pair.get("peak_memory_gib_theirs")
    return Figure(str(pair["ours"]), str(pair["theirs"]), pair["ratio"], pair["ratio_min"], pair["ratio_max"],
                  None if None in peaks else peaks, len(pair["ours_s"]), is_compared, pair.get("environment", PLAIN),
                  pair.get("peak_memory_since", "start"))


def pairs_of(measured: dict[str, object]) -> dict[str, dict[str, object]]:
    """By name. Older files have one, in which sdtune's format is float32."""
    if "ratio" in measured:
        return {"each_at_its_best": {"ours": measured.get("our_dtype", "float32"), "theirs": measured["diffusers_best"], **measured}}
    return {name: measured[name] for name in PAIRS if name in measured}


def tried_of_theirs(measured: dict[str, object]) -> list[str]:
    """The other side's number formats and layouts, those that were ended too."""
    timed = dict(measured.get("candidates_s") or {}).get("theirs") or measured.get("diffusers_candidates_s") or {}
    return [*timed, *(name for name in measured.get("ended_after_s") or {} if name.startswith("theirs"))]


def has_candidates(measured: dict[str, object]) -> bool:
    """Whether the other side was tried in several number formats or layouts, of which the best was kept."""
    return len(tried_of_theirs(measured)) > 1


def figures(measured: dict[str, object]) -> dict[str, Figure]:
    """By pair; where one configuration was tried nothing is at its best."""
    found = {name: figure_of(pair, "relative_errors" in measured) for name, pair in pairs_of(measured).items()}
    if not has_candidates(measured) and "each_at_its_best" in found:
        found["one_configuration"] = found.pop("each_at_its_best")
    return found


def check_batch(name: str, row: str, measured: dict[str, object]) -> None:
    """Whether a row that names a batch is of that one, as the file of a training says, else its command, else OWN_BATCH."""
    if not (named := re.search(r"_b(\d+)$", row)):
        return
    command = re.search(r"--batch (\d+)", str(measured["command"]))
    batch = dict(measured.get("model") or {}).get("batch") or (int(command[1]) if command else OWN_BATCH[row.split("_")[-2]])
    if batch != int(named[1]):
        raise SystemExit(f"{name}: is of batch {batch}")


def read_all() -> dict[str, dict[str, dict[str, object]]]:
    """Row -> processor -> file."""
    found: dict[str, dict[str, dict[str, object]]] = {row: {} for row in ROWS}
    for path in sorted(FOLDER.glob("*.json")):
        row = next((row for row in ROWS if path.name.startswith(row + "_")), None)
        if row is None:
            raise SystemExit(f"{path.name}: its name begins with none of {', '.join(ROWS)}")
        measured = json.loads(path.read_text())
        check_batch(path.name, row, measured)
        if (cores := measured["machine"]["cores"]) != CORES:
            raise SystemExit(f"{path.name}: is of {cores} cores, and the pages are of {CORES}")
        processor = measured["machine"]["cpu"].replace("(R)", "")
        if processor in found[row]:
            raise SystemExit(f"{path.name}: {row} on {processor} is there twice")
        found[row][processor] = measured
    return found


def table(found: dict[str, dict[str, dict[str, object]]], pair: str, processors: list[str]) -> list[str]:
    lines = ["| | " + " | ".join(processors) + " |", "|---" * (len(processors) + 1) + "|"]
    for row, by_processor in found.items():
        cells = [figures(by_processor[one]).get(pair) if one in by_processor else None for one in processors]
        if any(cells):
            lines.append(f"| {ROWS[row]} | " + " | ".join(cell.cell() if cell else "-" for cell in cells) + " |")
    return lines


def peaks(found: dict[str, dict[str, dict[str, object]]], processors: list[str]) -> list[str]:
    lines = ["| GiB: sdtune, diffusers | " + " | ".join(processors) + " |", "|---" * (len(processors) + 1) + "|"]
    for row, by_processor in found.items():
        cells = []
        for one in processors:
            figure = figures(by_processor[one]).get("each_at_its_best") if one in by_processor else None
            cells.append(f"{figure.peak[0]:.2f}, {figure.peak[1]:.2f}{figure.peak_mark()}" if figure and figure.peak else "-")
        if any(cell != "-" for cell in cells):
            lines.append(f"| {ROWS[row]} | " + " | ".join(cells) + " |")
    return lines


def growth() -> list[str]:
    """How time grows, against the operations that are counted."""
    measured = json.loads(GROWTH.read_text())
    points = {"batch": "batch", "resolution": "resolution, px", "ranks_of_a_thread_at_8_images": "ranks with a thread each, 8 images together"}
    lines = ["## How time grows", "![Seconds of a step over batch, resolution and ranks, and of a start over photos](measurements/growth.svg)", "",
             f"A training step of the 10 M model in float32, medians of {measured['rounds']} runs (of ranks {measured['rank_rounds']}), which take turns, of {measured['steps']} timed "
             f"steps on the "
             f"{measured['machine']['cpu']}, {measured['commit']} (`scripts/bench.py growth`).",
             "The dashed line has the operations that `sdtune plan` counts. Time for an operation, that of the first point being 1:", "",
             "| over | points | time for an operation |", "|---|---|---|"]
    for key, name in points.items():
        at = measured[key]
        lines.append(f"| {name} | {', '.join(at)} | {', '.join(format(point['of_counted'], '.2f') for point in at.values())} |")
    starts = {int(count): point["seconds"] for count, point in measured["photos"].items()}
    few, many = min(starts), max(starts)
    return [*lines, "", f"A run of one step, of photos that nothing is cached of, takes {starts[few]:.1f} s with {few} photos of 64 px and {starts[many]:.1f} s with {many}: "
            f"{1000 * measured['seconds_a_photo_of_few']:.1f} ms a photo up to 500,",
            f"{1000 * measured['seconds_a_photo']:.1f} ms from there on. One process with both cores takes {measured['batch']['8']['seconds']:.3f} s for 8 images, two ranks with one each "
            f"{measured['ranks_of_a_thread_at_8_images']['2']['seconds']:.3f} s: they send their gradients to each other.", ""]


def summary_cell(measured: dict[str, object] | None, pair: str | None) -> str:
    """Each at its best / both in float32, a dash in place of the first where it was not measured; one figure where they are the same pair or the
    second was not measured."""
    pairs = figures(measured) if measured else {}
    best = "one_configuration" if "one_configuration" in pairs else "each_at_its_best"
    wanted = [pairs.get(name) for name in ((pair,) if pair else (best, "both_float32"))]
    cells = [figure.summary() for figure in dict.fromkeys(wanted) if figure]
    return " / ".join(cells if wanted[0] or not cells else ["-", *cells]) or "-"


def memory_cell(measured: dict[str, object] | None) -> str:
    figure = figures(measured).get("each_at_its_best") if measured else None
    return f"{figure.peak[0] / figure.peak[1]:.2f}{figure.peak_mark()}" if figure and figure.peak else "-"


def without_environments(found: dict[str, dict[str, dict[str, object]]]) -> str:
    """The rows against diffusers that were measured in glibc's own environment alone, by processor; empty where there are none."""
    tried: dict[str, list[str]] = {}
    untried: dict[str, list[str]] = {}
    for row, by_processor in found.items():
        for processor, measured in by_processor.items():
            if row not in OTHERS:
                is_tried = all("environment" in pair for pair in pairs_of(measured).values())
                (tried if is_tried else untried).setdefault(processor, []).append(ROWS[row])
    if not tried and untried:
        return "every row against diffusers"
    rows = {processor: ", ".join(names) if processor in tried else "all" for processor, names in sorted(untried.items())}
    return "; ".join(f"on {processor}: {names}" for processor, names in rows.items())


def untried(found: dict[str, dict[str, dict[str, object]]]) -> str:
    """What files of former versions of bench.py lack of "each at its best", in lines; empty where they lack nothing."""
    rows: dict[str, list[str]] = {}
    for processor in sorted({processor for by_processor in found.values() for processor in by_processor}):
        for row, by_processor in found.items():
            if processor not in by_processor or "each_at_its_best" not in figures(measured := by_processor[processor]):
                continue
            theirs = " ".join(tried_of_theirs(measured))
            lacks = ["sdtune's bfloat16"] if "candidates_s" not in measured else []
            lacks += [f"diffusers' {name}" for name in ("bfloat16", "channels_last") if name not in theirs]
            for name in lacks:
                rows.setdefault(f"{name} on {processor}", []).append(ROWS[row])
    text = "; ".join(f"{name}: {', '.join(names)}" for name, names in sorted(rows.items()))
    return "\n".join(textwrap.wrap(f"Not tried in older measurements: {text}.", 140, break_long_words=False, break_on_hyphens=False)) if text else ""


def notes(found: dict[str, dict[str, dict[str, object]]]) -> list[str]:
    """What files say of themselves in words."""
    said = [f"- {processor}, {ROWS[row]}: {measured['note']}" for row, by_processor in found.items()
            for processor, measured in sorted(by_processor.items()) if "note" in measured]
    return ["", "What is to be known of them besides:", "", *said] if said else []


def versions(found: dict[str, dict[str, dict[str, object]]]) -> str:
    machines = [measured["machine"] for by_processor in found.values() for measured in by_processor.values()]
    diffusers, torch = (" and ".join(sorted({str(machine[key]) for machine in machines})) for key in ("diffusers", "torch"))
    return f"Measured with diffusers {diffusers} and PyTorch {torch}."


def environments(found: dict[str, dict[str, dict[str, object]]], own: str, settings: str) -> str:
    """What is to be known of both sides' memory, in lines; `own` and `settings` name the pages on sdtune's and on LibTorch's."""
    rest = without_environments(found)
    text = (f"{versions(found)} sdtune keeps freed memory of tensors for the next one ({own}). diffusers is timed with "
            "glibc's defaults and with the settings of memory that serve "
            f"every LibTorch process ({settings}), and the faster counts" + (f"; measured before that, with glibc's defaults alone: {rest}." if rest else "."))
    return "\n".join(textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False))


def summary() -> str:
    """README's table, which a kind of processor on which a row was not measured has a dash in, and a sentence on its environments."""
    found = read_all()
    processors = sorted({processor for by_processor in found.values() for processor in by_processor})
    lines = ["| speed, as a multiple of the other's | " + " | ".join(processors) + " |", "|---" * (len(processors) + 1) + "|"]
    for row, pair, name in SUMMARY:
        lines.append(f"| {name} | " + " | ".join(summary_cell(found[row].get(one), pair) for one in processors) + " |")
    peaks = [f"| {name} | " + " | ".join(memory_cell(found[row].get(one)) for one in processors) + " |" for row, name in SUMMARY_OF_MEMORY]
    since = f", {SINCE_FIRST_STEP} from its first step" if SINCE_FIRST_STEP in "".join(peaks) else ""
    lines += [f"| **peak memory of a training process, from its start{since}, and of one that generates an image, meanwhile, as a share of the "
              "other's** |" + " |" * len(processors), *peaks, ""]
    in_table = {row: found[row] for row, _, _ in SUMMARY}
    return "\n".join([*lines, environments(in_table, "docs/cpu.md", "docs/portrait_base.md")]) + "\n"


def readme() -> str:
    """README.md with the table between its marks written anew."""
    before, begins, rest = README.read_text().partition(SUMMARY_BEGINS)
    _, ends, after = rest.partition(SUMMARY_ENDS)
    if not begins or not ends:
        raise SystemExit(f"{README.name}: has no lines {SUMMARY_BEGINS.strip()} and {SUMMARY_ENDS.strip()}")
    return before + begins + summary() + ends + after


def page() -> str:
    found = read_all()
    processors = sorted({processor for by_processor in found.values() for processor in by_processor})
    lines = ["\n".join(filter(None, [HEAD + environments(found, "[cpu.md](cpu.md)", "[portrait_base.md](portrait_base.md)"), untried(found)])) + "\n"]
    for pair, title in PAIRS.items():
        lines += [f"## {title}", *table(found, pair, processors), ""]
    memory = peaks(found, processors)
    since = f" ({SINCE_FIRST_STEP}: from its first step)" if SINCE_FIRST_STEP in "".join(memory) else ""
    lines += ["## Peak memory, each at its best",
              f"Of the whole process: of `train` from its start{since}, of the others during the calls, the loaded weights included.", "",
              *memory, "", *growth(), "## Of which commit", ""]
    for processor in processors:
        commits: dict[str, list[str]] = {}
        for row, by_processor in found.items():
            if processor in by_processor:
                commits.setdefault(str(by_processor[processor]["commit"]), []).append(ROWS[row])
        lines += [f"- {processor}, {commit}: {'; '.join(rows)}" for commit, rows in commits.items()]
    lines += notes(found)
    return "\n".join(lines) + "\n" + NEXT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    stale = [(path, text) for path, text in ((PAGE, page()), (README, readme())) if path.read_text() != text]
    for path, text in stale:
        name = path.relative_to(ROOT)
        if is_check:
            print(f"{name} is not what scripts/make_performance_table.py writes", file=sys.stderr)
        else:
            path.write_text(text)
            print(name)
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

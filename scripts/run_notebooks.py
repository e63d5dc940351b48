#!/usr/bin/env python3
"""Runs the notebooks of examples/notebooks and keeps their outputs, small enough to commit.

    .venv/bin/python scripts/run_notebooks.py [NAME.ipynb ...]     default: those that need nothing but this repository

Their runs go to a folder runs beside them, which git ignores. Dropped: outputs above LARGEST_OUTPUT of one type (the report in
a frame, which is the file report.html of the run), times of execution, and what a program writes to stderr. Paths are written from the repository's root on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "notebooks"
OWN = ("first_portrait.ipynb", "lora_in_diffusers.ipynb")  # own_photos.ipynb needs a Stable Diffusion folder
LARGEST_OUTPUT = 260_000  # bytes of one type of one output
# A widget's state lives in the kernel: a committed notebook shows the HTML that is there without ipywidgets.
WITHOUT_WIDGETS = "import sys\nsys.modules['ipywidgets'] = None"


def kept(output: Any) -> Any | None:
    """The output as it is committed; None where nothing of it is."""
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    if "data" in output:
        output.data = {kind: str(content).replace(f"{ROOT}/", "") for kind, content in output.data.items()
                       if len(str(content)) <= LARGEST_OUTPUT}
        kinds = [kind for kind in ("text/html", "image/png", "image/jpeg") if kind in output.data]
        for other in kinds[1:]:  # the same image once
            del output.data[other]
        return output if output.data else None
    return output


def run(path: Path) -> None:
    """Runs a notebook in its folder and writes it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(WITHOUT_WIDGETS))
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=3600, record_timing=False,
                            resources={"metadata": {"path": str(path.parent)}}).execute()
    del notebook.cells[0]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(kept, cell.outputs) if output is not None]
            cell.execution_count = None
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = None
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    for name in sys.argv[1:] or OWN:
        run(FOLDER / name)

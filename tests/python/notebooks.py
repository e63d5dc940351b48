"""Runs cells as a notebook does, in a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat


def run_cells(sources: list[str], folder: Path) -> list[list[Any]]:
    """The outputs of each cell; the first exception of a cell is raised as nbclient's CellExecutionError."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=240,
                            resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: list[Any], kind: str = "text/html") -> str:
    """What a cell's outputs of one kind hold, together."""
    return "".join(output.get("data", {}).get(kind, "") for output in outputs)

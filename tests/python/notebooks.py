"""Runs cells as a notebook does, in a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
from jupyter_client import BlockingKernelClient, KernelManager


def run_cells(sources: list[str], folder: Path, allow_errors: bool = False) -> list[list[Any]]:
    """The outputs of each cell; the first exception of a cell is raised as nbclient's CellExecutionError, or is one of its outputs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=240, allow_errors=allow_errors,
                            resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs: list[Any], kind: str = "text/html") -> str:
    """What a cell's outputs of one kind hold, together."""
    return "".join(output.get("data", {}).get(kind, "") for output in outputs)


def error_of(outputs: list[Any]) -> tuple[str, str]:
    """Class and text of the one exception that a cell shows."""
    (error,) = [output for output in outputs if output.output_type == "error"]
    return error["ename"], error["evalue"]


def manager_of(folder: Path) -> tuple[KernelManager, BlockingKernelClient]:
    """A kernel that a test can kill."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client


def printed(client: BlockingKernelClient, source: str) -> str:
    """What a cell of such a kernel prints."""
    text = ""

    def hook(message: dict[str, Any]) -> None:
        nonlocal text
        text += message["content"].get("text", "") if message["msg_type"] == "stream" else ""

    reply = client.execute_interactive(source, timeout=120, output_hook=hook)
    assert reply["content"]["status"] == "ok", reply["content"]
    return text

"""The example notebook runs, and draws."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "sweep.ipynb"


def test_the_notebook_runs_and_draws_its_figures(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are stripped"
    NotebookClient(notebook, timeout=100, resources={"metadata": {"path": NOTEBOOK.parent}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    figures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert len(figures) == 2
    # PLAYRATE_FIGURES keeps them for inspection.
    kept = Path(os.environ.get("PLAYRATE_FIGURES", tmp_path))
    for name, figure in zip(("bars", "lines"), figures, strict=True):
        (kept / f"sweep-{name}.png").write_bytes(base64.b64decode(figure))

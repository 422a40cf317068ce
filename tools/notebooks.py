"""Re-run notebooks in place and save their outputs without the BokehJS that a viewer loads by itself.

    python tools/notebooks.py                 all of notebooks/
    python tools/notebooks.py notebooks/how-it-works.ipynb
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
BOKEH_LOADER = "application/vnd.bokehjs_load.v0+json"


def strip(notebook: nbformat.NotebookNode) -> None:
    """Drop what changes from run to run or is the same megabytes in each file."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if BOKEH_LOADER not in o.get("data", {})]
    notebook.metadata.kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def refresh(path: Path) -> None:
    """Execute one notebook in its folder; nothing is written if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", store_widget_state=True, coalesce_streams=True,
                   resources={"metadata": {"path": str(path.parent)}}).execute()
    strip(notebook)
    beside = path.with_suffix(".part")
    nbformat.write(notebook, beside)
    os.replace(beside, path)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main(names: list[str]) -> None:
    for path in [Path(n) for n in names] or sorted(NOTEBOOKS.glob("*.ipynb")):
        refresh(path)


if __name__ == "__main__":
    main(sys.argv[1:])

"""A notebook as one HTML file that opens offline: `export`.

The file holds what the notebook had saved: text, code, tables, pictures, and Bokeh plots that still pan, zoom
and hover. It carries BokehJS itself, and a content security policy under which no page element can ask any host
for anything, whatever a saved output contains.
"""

import html
import os
import re
from importlib.metadata import version
from pathlib import Path
from string import Template

import nbformat
from pygments.formatters import HtmlFormatter

from .report_html import Page

TEMPLATE = Path(__file__).parent / "report_template"
CELL_TIMEOUT_S = 1800


class ReportError(ValueError):
    """A notebook that cannot become a report; the message is one sentence for the person who asked."""


def export(notebook: Path | str, out: Path | str | None = None, execute: bool = False) -> Path:
    """Write `notebook` as one self-contained HTML file and return its path.

    notebook: an .ipynb file. Its saved outputs are exported; the file itself is never changed.
    out: the file to write, by default the notebook's name with .html beside it. It appears whole or not at all.
    execute: run the notebook first, in this Python and in the notebook's folder, and export those outputs.
    Errors: ReportError when there is no such file, it is no notebook, it has no outputs, or a cell has failed.
    """
    notebook = Path(notebook)
    out = Path(out) if out is not None else notebook.with_suffix(".html")
    if not out.absolute().parent.is_dir():
        raise ReportError(f"{out} cannot be written: there is no folder {out.parent}")
    if out.is_dir():
        raise ReportError(f"{out} cannot be written: it is a folder")
    if out.resolve() == notebook.resolve():
        raise ReportError(f"{out} cannot be written: it is the notebook itself")
    content = read(notebook)
    if execute:
        content = run(content, notebook)
    check(content, notebook)
    write_whole(out, page(content, notebook))
    return out


def read(notebook: Path) -> nbformat.NotebookNode:
    if not notebook.is_file():
        raise ReportError(f"{notebook} cannot be exported: there is no such file")
    try:
        content = nbformat.read(notebook, as_version=4)
        nbformat.validate(content)
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ReportError(
            f"{notebook} cannot be exported: it is not a Jupyter notebook ({reason})"
        ) from error
    return content


def run(content: nbformat.NotebookNode, notebook: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs, widget state included."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    # Widgets of an earlier session are not these outputs' widgets.
    content.metadata.pop("widgets", None)
    client = NotebookClient(
        content,
        kernel_name="python3",
        timeout=CELL_TIMEOUT_S,
        store_widget_state=True,
        resources={"metadata": {"path": str(notebook.resolve().parent)}},
    )
    try:
        return client.execute()
    except CellExecutionError as error:
        raise ReportError(
            f"{notebook} cannot be exported: {error.ename}: {error.evalue} when it was run"
        ) from error
    except AssertionError:  # how nbclient ends when Ctrl-C comes while a cell runs
        raise KeyboardInterrupt from None
    except (CellTimeoutError, DeadKernelError) as error:
        reason = str(error).splitlines()[0]
        raise ReportError(f"{notebook} cannot be exported: {reason} when it was run") from error


def check(content: nbformat.NotebookNode, notebook: Path) -> None:
    """A report says nothing false by omission: no empty notebook, and no cell that failed unless marked so."""
    if not content.cells:
        raise ReportError(f"{notebook} cannot be exported: it has no cells")
    code = [(number, cell) for number, cell in enumerate(content.cells, 1) if cell.cell_type == "code"]
    if code and not any(cell.outputs for _, cell in code):
        raise ReportError(
            f"{notebook} cannot be exported: it has no saved outputs; run it and save it, or export with execute"
        )
    for number, cell in code:
        if "raises-exception" in cell.metadata.get("tags", []):
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                raise ReportError(
                    f"{notebook} cannot be exported: cell {number} ended in "
                    f"{output.ename}: {output.evalue.splitlines()[0] if output.evalue else ''}"
                )


def page(content: nbformat.NotebookNode, notebook: Path) -> str:
    rendered = Page(content, notebook.resolve().parent)
    body = rendered.body()
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.S)
    title = html.unescape(re.sub(r"<[^>]+>", "", heading[1])).rstrip("¶ ") if heading else notebook.stem
    light, dark = (HtmlFormatter(style=s).get_style_defs(".highlight") for s in ("default", "github-dark"))
    return Template((TEMPLATE / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        style=(TEMPLATE / "report.css").read_text(encoding="utf-8"),
        code_light=light,
        code_dark=dark,
        scripts=rendered.bokehjs(),
        body=body,
        source=html.escape(notebook.name),
        version=version("cxdbench"),
    )


def write_whole(out: Path, text: str) -> None:
    """Write beside and rename, so that a reader or a failure never meets half a report."""
    beside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(out)
    finally:
        beside.unlink(missing_ok=True)

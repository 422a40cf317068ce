"""Notebook cells as HTML that needs nothing from outside: text, math, code and outputs."""

import html
import json
import re
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import latex2mathml.converter
from bokeh.models import Model
from bokeh.resources import Resources
from nbconvert.filters import Highlight2HTML, ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from .report_widgets import WIDGET_VIEW, Widgets

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
BOKEH_LOAD = "application/vnd.bokehjs_load.v0+json"
BOKEH_EXEC = "application/vnd.bokehjs_exec.v0+json"
SCRIPT = "application/javascript"
# The richest form that a browser shows without a kernel comes first.
TEXT_FORMS = ("text/html", "image/svg+xml", "text/latex", "text/markdown")
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Page:
    """One notebook's cells. `body` first: `bokehjs` then knows which plots there are."""

    def __init__(self, notebook: NotebookNode, folder: Path):
        self.notebook = notebook
        self.folder = folder
        self.plots: list[str] = []
        state = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
        self.widgets = Widgets(state, self.output, self.plots)

    def body(self) -> str:
        return "\n".join(getattr(self, f"{cell.cell_type}_cell")(cell) for cell in self.notebook.cells)

    def markdown_cell(self, cell: NotebookNode) -> str:
        return f'<section class="prose">{self.markdown(cell.source, cell.get("attachments"))}</section>'

    def raw_cell(self, cell: NotebookNode) -> str:
        return f"<pre>{html.escape(cell.source)}</pre>"

    def code_cell(self, cell: NotebookNode) -> str:
        hidden, tags = cell.metadata.get("jupyter", {}), cell.metadata.get("tags", [])
        source = self.highlight(cell.source) if cell.source.strip() else ""
        if source and (hidden.get("source_hidden") or "hide-input" in tags or "remove-input" in tags):
            source = f"<details><summary>code</summary>{source}</details>"
        outputs = "".join(
            f'<div class="output">{shown}</div>' for o in cell.outputs if (shown := self.output(o))
        )
        if outputs and hidden.get("outputs_hidden"):
            outputs = f"<details><summary>output</summary>{outputs}</details>"
        return f'<section class="code">{source}{outputs}</section>'

    @cached_property
    def highlight(self):
        language = self.notebook.metadata.get("language_info", {}).get("pygments_lexer", "ipython3")
        return Highlight2HTML(pygments_lexer=language)

    def output(self, output: NotebookNode) -> str:
        """One output, or "" for one that has nothing to show."""
        if output["output_type"] == "stream":
            return f'<pre class="{output["name"]}">{ansi2html(settled(output["text"]))}</pre>'
        if output["output_type"] == "error":
            return f'<pre class="stderr">{ansi2html(chr(10).join(output["traceback"]))}</pre>'
        data = output["data"]
        if BOKEH_LOAD in data or "bk-notebook-logo" in data.get("text/html", ""):
            return ""  # BokehJS itself and its banner: the page carries its own
        if BOKEH_EXEC in data and SCRIPT in data:
            self.plots.append(data[SCRIPT])
            return f"<script>{script(data[SCRIPT])}</script>"
        if WIDGET_VIEW in data and (shown := self.widgets.view(data[WIDGET_VIEW]["model_id"])):
            return shown
        return self.bundle(data)

    def bundle(self, data: dict) -> str:
        """The best static form among a mime bundle's."""
        for form in TEXT_FORMS:
            if form in data:
                return self.text_form(form, data[form])
        for form in PICTURES:
            if form in data:
                return f'<img alt="" src="data:{form};base64,{"".join(data[form].split())}">'
        if "application/json" in data:
            return f"<pre>{html.escape(json.dumps(data['application/json'], indent=1))}</pre>"
        return f"<pre>{ansi2html(data['text/plain'])}</pre>" if data.get("text/plain") else ""

    def text_form(self, form: str, text: str) -> str:
        if form == "text/markdown":
            return f'<div class="prose">{self.markdown(text)}</div>'
        if form == "text/latex":
            return mathml(text.strip().strip("$"), "block")
        if form == "image/svg+xml":
            return re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>", "", text, flags=re.S)
        return text

    def markdown(self, text: str, attachments: dict | None = None) -> str:
        renderer = Prose(escape=False, embed_images=True, path=str(self.folder), attachments=attachments)
        return MarkdownWithMath(renderer=renderer).render(text)

    def bokehjs(self) -> str:
        """BokehJS as script elements, as much of it as the page's plots use, or "" when there are none."""
        if not self.plots:
            return ""
        parts = Resources(mode="inline", log_level="warn", components=components(self.plots)).js_raw
        return "\n".join(f"<script>{script(part)}</script>" for part in parts)


class Prose(IPythonRenderer):
    """Markdown whose math is MathML and whose pictures are inside or, from elsewhere, links."""

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def inline_math(self, body: str) -> str:
        return mathml(body, "inline")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def image(self, text: str, url: str, title: str | None = None) -> str:
        if urlsplit(url).scheme in ("http", "https"):
            return self.link(text or html.escape(url), url, title)
        return super().image(text, url, title)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # The notebooks' reports lie side by side as the notebooks do.
        if not urlsplit(url).scheme:
            url = re.sub(r"\.ipynb(?=$|#)", ".html", url)
        return super().link(text, url, title)


def mathml(tex: str, display: str) -> str:
    """TeX as MathML, which browsers draw by themselves; as code when it is beyond the converter."""
    try:
        return latex2mathml.converter.convert(tex, display=display)
    except Exception:  # the converter has no base class for its errors
        return f"<code>{html.escape(tex)}</code>"


def settled(text: str) -> str:
    """What a terminal would show after carriage returns: a progress bar's last state."""
    return re.sub(r"[^\n]*\r(?!\n)", "", text.rstrip("\r"))


def script(text: str) -> str:
    """Script text that cannot end its own element."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.I)


def components(plots: list[str]) -> list[str]:
    """The parts of BokehJS that the plots, given as text that holds their documents, need."""
    text = "".join(plots)
    names = set(re.findall(r'"name":\s*"(\w+)"', text))
    modules = {
        Model.model_class_reverse_map[n].__module__ for n in names if n in Model.model_class_reverse_map
    }
    tables = any("widgets.tables" in module for module in modules)
    wanted = {
        "bokeh": True,
        "bokeh-widgets": tables or any("models.widgets" in module for module in modules),
        "bokeh-tables": tables,
        "bokeh-gl": '"webgl"' in text,
        "bokeh-mathjax": "$$" in text or bool(names & {"TeX", "MathML"}),
    }
    return [name for name, needed in wanted.items() if needed]

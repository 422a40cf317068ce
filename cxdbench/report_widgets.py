"""Saved ipywidgets as static HTML, and the Bokeh plots among them as live ones.

A notebook saves its widgets' state in its metadata: model id -> model name and the values that differ from the
defaults. With no kernel behind it a slider is its label and value, a box is a box, and a plot is still a plot.
"""

import html
import json
import re
from collections.abc import Callable
from uuid import uuid4

import ipywidgets
import latex2mathml.converter

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# What of a widget's layout makes sense on paper. Heights are not among it: nothing on paper scrolls.
LAYOUT = (
    "align_items", "align_self", "border", "border_top", "border_right", "border_bottom", "border_left", "display",
    "flex", "flex_flow", "grid_area", "grid_auto_columns", "grid_auto_flow", "grid_column", "grid_gap", "grid_row",
    "grid_template_areas", "grid_template_columns", "justify_content", "margin", "max_width", "min_width", "order",
    "padding", "visibility", "width",
)  # fmt: skip
HEIGHTS = ("height", "min_height")
NOT_SHOWN = {"ButtonModel", "FileUploadModel", "PlayModel", "ControllerModel", "AudioModel", "VideoModel"}


class Widgets:
    """state: the notebook's saved widget models. output: renders one notebook output. plots: collects, for each
    plot, the text that holds its Bokeh document."""

    def __init__(self, state: dict, output: Callable[[dict], str], plots: list[str]):
        self.state = state
        self.output = output
        self.plots = plots
        self.elements: set[str] = set()

    def view(self, model_id: str) -> str:
        """The widget and all within it, or "" when nothing of it was saved or is worth showing."""
        shown = self.widget(model_id)
        return f'<div class="widgets">{shown}</div>' if shown else ""

    def widget(self, reference: str) -> str:
        model = self.state.get(reference.removeprefix("IPY_MODEL_"))
        if model is None or model["model_name"] in NOT_SHOWN:
            return ""
        name, values = model["model_name"], defaults(model["model_name"]) | model["state"]
        plot = name == "BokehModel"
        style = self.style(values, LAYOUT + HEIGHTS if plot else LAYOUT)
        if "display:none" in style or "visibility:hidden" in style:
            return ""
        if plot:
            inside, kind = self.bokeh(values), "w-plot"
        elif name == "OutputModel":
            inside, kind = "".join(map(self.output, values.get("outputs", ()))), "w-output"
        elif name in ("TabModel", "AccordionModel"):
            inside, kind = self.folds(name, values), "w-folds"
        elif "children" in values:
            inside = "".join(map(self.widget, values["children"] or ()))
            kind = {"HBoxModel": "w-row", "GridBoxModel": "w-grid"}.get(name, "w-column")
        elif name in ("HTMLModel", "HTMLMathModel", "LabelModel"):
            inside, kind = markup(name, values), "w-html"
        elif name == "ImageModel":
            inside, kind = image(model, values), "w-html"
        else:
            inside, kind = field(values), "w-field"
        return f'<div class="{kind}"{style}>{inside}</div>' if inside else ""

    def style(self, values: dict, keys: tuple[str, ...]) -> str:
        layout = self.state.get(str(values.get("layout", "")).removeprefix("IPY_MODEL_"), {}).get("state", {})
        rules = [f"{key.replace('_', '-')}:{layout[key]}" for key in keys if layout.get(key)]
        return f' style="{html.escape(";".join(rules))}"' if rules else ""

    def folds(self, name: str, values: dict) -> str:
        """Tabs all stand open, since paper has no clicks; of an accordion what was open."""
        titles, chosen = list(values.get("titles") or ()), values.get("selected_index")
        shown = []
        for index, child in enumerate(values["children"] or ()):
            if inside := self.widget(child):
                title = titles[index] if index < len(titles) and titles[index] else f"part {index + 1}"
                opened = " open" if name == "TabModel" or index == chosen else ""
                shown.append(f"<details{opened}><summary>{html.escape(title)}</summary>{inside}</details>")
        return "".join(shown)

    def bokeh(self, values: dict) -> str:
        bundle = values.get("render_bundle")
        if not bundle:
            return ""
        bundle = json.loads(bundle) if isinstance(bundle, str) else bundle
        [element] = bundle["render_items"][0]["roots"].values()
        text = json.dumps([bundle["docs_json"], bundle["render_items"]])
        div = bundle["div"]
        if element in self.elements:  # shown twice: each view needs an element of its own
            fresh = str(uuid4())
            text, div = text.replace(element, fresh), div.replace(element, fresh)
        self.elements.add(element)
        self.plots.append(text)
        return f"{div}<script>Bokeh.embed.embed_items(...{text.replace('<', chr(92) + 'u003c')});</script>"


def defaults(model_name: str) -> dict:
    """What a widget's saved state leaves out."""
    known = getattr(ipywidgets, model_name.removesuffix("Model"), None)
    return {name: trait.default_value for name, trait in known.class_traits().items()} if known else {}


def label(values: dict) -> str:
    text = str(values.get("description") or "")
    return text if values.get("description_allow_html") else math(html.escape(text))


def markup(name: str, values: dict) -> str:
    value = str(values.get("value") or "")
    value = html.escape(value) if name == "LabelModel" else value
    value = value if name == "HTMLModel" else math(value)
    return f"<b>{label(values)}</b> {value}" if label(values) else value


def math(text: str) -> str:
    return re.sub(r"\$\$?(.+?)\$\$?", lambda m: latex2mathml.converter.convert(html.unescape(m[1])), text)


def image(model: dict, values: dict) -> str:
    for buffer in model.get("buffers", ()):
        if buffer["path"] == ["value"] and buffer["encoding"] == "base64":
            form = {"svg": "svg+xml", "jpg": "jpeg"}.get(values["format"], values["format"])
            return f'<img alt="" src="data:image/{form};base64,{buffer["data"]}">'
    return ""


def field(values: dict) -> str:
    """A control as its label and value, with its limits where it has some."""
    value = chosen(values)
    if value is None or value == "":
        return ""
    limits = ""
    if values.get("min") is not None and values.get("max") is not None and "base" not in values:
        limits = f"<small>{formatted(values['min'], values)} to {formatted(values['max'], values)}</small>"
    return f"<span>{label(values)}</span><output>{html.escape(value)}</output>{limits}"


def chosen(values: dict) -> str | None:
    if "_options_labels" in values:
        index, labels = values.get("index"), values["_options_labels"]
        picked = index if isinstance(index, list | tuple) else [] if index is None else [index]
        return ", ".join(str(labels[i]) for i in picked if i < len(labels))
    value = values.get("value")
    if isinstance(value, list | tuple):
        return " to ".join(formatted(part, values) for part in value)
    return None if value is None else formatted(value, values)


def formatted(value, values: dict) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    try:
        return format(value, values.get("readout_format") or "g")
    except ValueError:  # d3 knows forms that Python does not
        return f"{value:g}"

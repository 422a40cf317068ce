"""What a report holds and what it refuses; tests/browser/test_report_offline.py opens one."""

import base64
import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from cxdbench.report import ReportError, export

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
PNG = base64.b64encode(b"\x89PNG not really").decode()


def shown(data: dict, **more) -> dict:
    return new_output("display_data", data=data, **more)


def notebook(path, *cells, state: dict | None = None):
    content = new_notebook(cells=list(cells))
    if state is not None:
        content.metadata["widgets"] = {STATE: {"version_major": 2, "version_minor": 0, "state": state}}
    nbformat.write(content, path)
    return path


def exported(tmp_path, *cells, state=None) -> str:
    """The report's body, without its head."""
    text = export(notebook(tmp_path / "a.ipynb", *cells, state=state)).read_text(encoding="utf-8")
    return text.split("<body>")[1]


def with_widgets(tmp_path, state: dict) -> str:
    cell = new_code_cell("w", outputs=[shown({VIEW: {"model_id": "top"}, "text/plain": "VBox(children=())"})])
    return exported(tmp_path, cell, state=state)


def model(name: str, **state) -> dict:
    return {"model_name": f"{name}Model", "model_module": "@jupyter-widgets/controls", "state": state}


def texts(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


# What it refuses


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file"),
        ("", "it is not a Jupyter notebook"),
        ("{", "it is not a Jupyter notebook"),
        ("[1, 2]", "it is not a Jupyter notebook"),
        ('{"cells": 3, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "it is not a Jupyter notebook"),
        ('{"a": "json file of another kind"}', "it is not a Jupyter notebook"),
        (b"\x89HDF\r\n\x1a\n\x00\xff", "it is not a Jupyter notebook"),
    ],
)
def test_what_is_no_notebook_is_refused(tmp_path, content, reason):
    path = tmp_path / "a.ipynb"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ReportError, match=f"a.ipynb cannot be exported: {reason}") as refusal:
        export(path)
    assert "\n" not in str(refusal.value)
    assert [found.name for found in tmp_path.iterdir()] == ([] if content is None else ["a.ipynb"])


def test_a_notebook_without_outputs_is_refused(tmp_path):
    path = notebook(tmp_path / "a.ipynb", new_markdown_cell("# t"), new_code_cell("1 + 1"))
    with pytest.raises(ReportError, match="it has no saved outputs; run it and save it"):
        export(path)


def test_a_failed_cell_is_refused_unless_it_was_meant_to_fail(tmp_path):
    error = new_output(
        "error", ename="ValueError", evalue="wss is -1", traceback=["\x1b[31mValueError\x1b[0m: wss"]
    )
    cell = new_code_cell("f()", outputs=[error])
    path = notebook(tmp_path / "a.ipynb", new_markdown_cell("# t"), cell)
    with pytest.raises(ReportError, match="cell 2 ended in ValueError: wss is -1"):
        export(path)
    cell.metadata.tags = ["raises-exception"]
    body = exported(tmp_path, cell)
    assert '<span class="ansi-red-fg">ValueError</span>: wss' in body


def test_an_unknown_folder_is_refused(tmp_path):
    path = notebook(tmp_path / "a.ipynb", new_markdown_cell("# t"))
    with pytest.raises(ReportError, match=r"there is no folder .*nowhere"):
        export(path, tmp_path / "nowhere" / "a.html")


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = notebook(tmp_path / "a.ipynb", new_markdown_cell("# new"))
    (tmp_path / "a.html").write_text("old")
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda self, target: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        export(path)
    assert (tmp_path / "a.html").read_text() == "old"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.html", "a.ipynb"]


# What it holds


def test_the_file_forbids_every_request_and_names_no_host(tmp_path):
    text = export(notebook(tmp_path / "a.ipynb", new_markdown_cell("# A *title*"))).read_text(
        encoding="utf-8"
    )
    assert "Content-Security-Policy\" content=\"default-src 'none'" in text
    assert "connect-src" not in text
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert "<title>A title</title>" in text
    assert "Bokeh" not in text


def test_math_is_mathml_and_what_is_beyond_the_converter_stays_readable(tmp_path):
    body = exported(tmp_path, new_markdown_cell("a $t_R$ b\n\n$$\\frac{1}{2}$$\n\n$\\left($"))
    assert body.count("<math") == 2 and "<mfrac>" in body and 'display="block"' in body
    assert "<code>\\left(</code>" in body


def test_pictures_are_inside_and_those_from_elsewhere_are_links(tmp_path):
    (tmp_path / "p.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    cell = new_markdown_cell("![here](p.svg) ![stuck](attachment:q.png) ![there](https://example.org/x.png)")
    cell.attachments = {"q.png": {"image/png": PNG}}
    body = exported(
        tmp_path, cell, new_code_cell("f", outputs=[shown({"image/png": PNG + "\n", "text/plain": "x"})])
    )
    assert 'src="data:image/svg+xml;base64,' in body
    assert body.count(f'src="data:image/png;base64,{PNG}"') == 2
    assert '<a href="https://example.org/x.png">there</a>' in body


def test_links_between_notebooks_become_links_between_reports(tmp_path):
    body = exported(tmp_path, new_markdown_cell("[next](b.ipynb#part) [far](https://example.org/b.ipynb)"))
    assert 'href="b.html#part"' in body and 'href="https://example.org/b.ipynb"' in body


def test_the_richest_form_that_needs_no_kernel_is_shown(tmp_path):
    outputs = [
        shown({"text/html": "<table><tr><td>P99</td></tr></table>", "text/plain": "PLAIN"}),
        shown({"image/svg+xml": "<?xml version='1.0'?>\n<svg id='s'/>", "image/png": PNG}),
        shown({"text/latex": "$t_R$", "text/plain": "PLAIN"}),
        shown({"application/json": {"hit_ratio": 0.38}, "text/plain": "PLAIN"}),
        shown({"text/plain": "a < b"}),
        new_output("stream", name="stdout", text=" 0%|  |\r50%|= |\r100%|==|\nhit\n"),
    ]
    body = exported(tmp_path, new_code_cell("f", outputs=outputs))
    assert "<td>P99</td>" in body and "<svg id='s'/>" in body and "<?xml" not in body and PNG not in body
    assert (
        "<math" in body
        and "hit_ratio&quot;: 0.38" in texts(body)
        and "a &lt; b" in body
        and "PLAIN" not in body
    )
    assert "100%|==|\nhit" in body and "50%" not in body


def test_hidden_code_is_folded_and_not_lost(tmp_path):
    cell = new_code_cell("secret_name()", outputs=[shown({"text/plain": "x"})])
    cell.metadata["jupyter"] = {"source_hidden": True}
    assert re.search(r"<details><summary>code</summary>.*secret_name", exported(tmp_path, cell), re.S)


def test_widgets_are_labels_and_values_and_defaults_are_filled_in(tmp_path):
    children = [
        f"IPY_MODEL_{name}" for name in ("wss", "n", "kind", "range", "on", "html", "label", "button", "gone")
    ]
    state = {
        "top": model("VBox", children=children),
        "wss": model("FloatSlider", description="WSS <x>", value=2.5, min=0.1, max=4.0, readout_format=".2f"),
        "n": model("IntSlider", description="threads"),  # Lab leaves defaults out: 0, of 0 to 100
        "kind": model("Dropdown", description="eviction", _options_labels=["fifo", "clock"], index=1),
        "range": model("IntRangeSlider", description="pages", value=[2, 8], min=0, max=9),
        "on": model("Checkbox", description="charged", value=True),
        "html": model("HTML", value="<table><tr><td>P50 8.4 us</td></tr></table>"),
        "label": model("Label", value="a < b"),
        "button": model("Button", description="Run"),
    }
    body = with_widgets(tmp_path, state)
    seen = texts(body)
    assert "WSS &lt;x&gt; 2.50 0.10 to 4.00" in seen
    assert "threads 0 0 to 100" in seen
    assert "eviction clock" in seen and "fifo" not in seen
    assert "pages 2 to 8" in seen and "charged yes" in seen and "a &lt; b" in seen
    assert "<td>P50 8.4 us</td>" in body
    assert "Run" not in seen and "VBox(" not in seen


def test_boxes_tabs_and_hidden_widgets(tmp_path):
    state = {
        "top": model(
            "HBox", children=["IPY_MODEL_tab", "IPY_MODEL_fold", "IPY_MODEL_off"], layout="IPY_MODEL_lay"
        ),
        "lay": model("Layout", width="60%", height="10px", grid_gap=None),
        "tab": model(
            "Tab", children=["IPY_MODEL_a", "IPY_MODEL_b"], titles=["CDF", "CCDF"], selected_index=0
        ),
        "fold": model("Accordion", children=["IPY_MODEL_a"], titles=["More"], selected_index=None),
        "a": model("Label", value="one"),
        "b": model("Label", value="two"),
        "off": model("Label", value="unseen", layout="IPY_MODEL_none"),
        "none": model("Layout", display="none"),
    }
    body = with_widgets(tmp_path, state)
    assert '<div class="w-row" style="width:60%">' in body
    assert body.count("<details open><summary>") == 2 and "<details><summary>More</summary>" in body
    assert "one" in texts(body) and "two" in texts(body) and "unseen" not in body


def test_an_output_widget_shows_what_it_caught(tmp_path):
    caught = [{"output_type": "stream", "name": "stdout", "text": "caught"}]
    assert "caught" in with_widgets(tmp_path, {"top": model("Output", outputs=caught)})


def test_a_widget_whose_state_was_not_saved_falls_back_to_what_was(tmp_path):
    outputs = [
        shown({VIEW: {"model_id": "gone"}, "image/svg+xml": "<svg id='kept'/>", "text/plain": "VBox()"})
    ]
    assert "<svg id='kept'/>" in exported(tmp_path, new_code_cell("w", outputs=outputs), state={})


def bokeh_model(title: str) -> dict:
    from bokeh.plotting import figure
    from jupyter_bokeh import BokehModel

    plot = figure(width=300, height=200, title=title)
    plot.line([1, 2], [1, 2])
    bundle = BokehModel._model_to_traits(plot)
    return {
        "model_name": "BokehModel",
        "model_module": "@bokeh/jupyter_bokeh",
        "state": {"render_bundle": bundle},
    }


def test_bokehjs_is_there_once_for_many_plots_and_text_cannot_break_out(tmp_path):
    state = {
        "top": model("VBox", children=["IPY_MODEL_a", "IPY_MODEL_b", "IPY_MODEL_a"]),
        "a": bokeh_model("</script><script>broken</script>"),
        "b": bokeh_model("b"),
    }
    state["b"]["state"]["render_bundle"] = json.dumps(
        state["b"]["state"]["render_bundle"]
    )  # as a kernel sends it
    cell = new_code_cell("w", outputs=[shown({VIEW: {"model_id": "top"}})])
    text = export(notebook(tmp_path / "a.ipynb", cell, state=state)).read_text(encoding="utf-8")
    head, body = text.split("</head>", 1)
    assert re.findall(r"END (\S+) \*/", head) == ["bokeh.min.js"]  # no widgets, tables or WebGL are in use
    assert body.count("embed_items(") == 3 and "</script><script>broken" not in body
    elements = re.findall(r'<div id="([\w-]+)"', body)
    assert len(set(elements)) == 3, "a plot shown twice needs two elements"


def test_execute_runs_in_the_notebooks_folder_and_leaves_the_file_alone(tmp_path):
    (tmp_path / "beside.txt").write_text("found it")
    path = notebook(tmp_path / "a.ipynb", new_code_cell("print(open('beside.txt').read())"))
    before = path.read_bytes()
    out = export(str(path), tmp_path / "out.html", execute=True)
    assert out == tmp_path / "out.html" and "found it" in out.read_text(encoding="utf-8")
    assert path.read_bytes() == before and not (tmp_path / "a.html").exists()


def test_execute_tells_which_error_a_cell_ended_in(tmp_path):
    path = notebook(tmp_path / "a.ipynb", new_code_cell("1 / 0"))
    with pytest.raises(
        ReportError, match=r"^\S+a\.ipynb cannot be exported: ZeroDivisionError: division by zero when"
    ):
        export(path, execute=True)


def test_a_report_never_overwrites_its_notebook(tmp_path):
    path = notebook(tmp_path / "a.ipynb", new_markdown_cell("# text"))
    before = path.read_bytes()
    for out, text in ((path, "the notebook itself"), (tmp_path, "a folder")):
        with pytest.raises(ReportError, match=text):
            export(path, out)
    with pytest.raises(ReportError, match="no cells"):
        export(notebook(tmp_path / "none.ipynb"))
    assert path.read_bytes() == before

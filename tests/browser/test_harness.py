"""The harness on a notebook of its own: what the explorer's tests lean on."""

import nbformat
import pytest

from .harness import (
    bokeh_data,
    close_notebook,
    open_notebook,
    press_slider,
    run_all,
    save,
    screenshot,
    slider_value,
    wait_idle,
)  # fmt: skip

SETUP = """
import ipywidgets as W
from bokeh.io import output_notebook
from bokeh.plotting import figure, ColumnDataSource
from bokeh.resources import Resources
from jupyter_bokeh import BokehModel
output_notebook(Resources(mode="inline", components=["bokeh"]), hide_banner=True)
"""
WORK = """
source = ColumnDataSource({"x": [0, 1, 2], "y": [0, 1, 2]}, name="curve")
plot = figure(width=400, height=300)
plot.line("x", "y", source=source, line_width=4, line_color="#d55e00")
wss = W.FloatSlider(description="WSS", value=1, min=0, max=4, step=0.5)
other = W.FloatSlider(description="WSS too", value=1, min=0, max=4, step=0.5)
wss.observe(lambda change: source.data.update(y=[0, change["new"], 2]), "value")
W.VBox([wss, other, BokehModel(plot)])
"""


def notebook(path, *cells):
    v4, kernel = nbformat.v4, {"name": "python3", "display_name": "Python 3"}
    content = v4.new_notebook(
        cells=[v4.new_code_cell(cell) for cell in cells], metadata={"kernelspec": kernel}
    )
    nbformat.write(content, path)


@pytest.mark.parametrize("dark", [False, True])
def test_a_slider_moved_by_keyboard_moves_the_curve(lab, new_page, dark, tmp_path, monkeypatch):
    monkeypatch.setenv("CXD_SCREENSHOTS", str(tmp_path))
    notebook(lab.root / "work.ipynb", SETUP, WORK)
    page = new_page(1000, 700, dark=dark)
    open_notebook(page, lab, "work.ipynb")
    run_all(page)
    figure = page.locator(".bk-Figure").last
    assert bokeh_data(page, "curve")["y"] == [0, 1, 2]
    before = figure.screenshot()

    press_slider(page, "WSS", "ArrowRight", times=3)
    wait_idle(page)

    assert slider_value(page, "WSS") == 2.5
    assert slider_value(page, "WSS too") == 1
    assert bokeh_data(page, "curve")["y"] == [0, 2.5, 2]
    assert figure.screenshot() != before
    assert page.evaluate("document.body.dataset.jpThemeLight") == ("false" if dark else "true")
    assert screenshot(page, "work").stat().st_size > 5000
    save(page)
    state = nbformat.read(lab.root / "work.ipynb", 4).metadata.widgets
    assert 2.5 in [model["state"].get("value") for model in next(iter(state.values()))["state"].values()]
    close_notebook(page)
    assert page.blocked == [] and page.errors == []


def test_what_is_not_loopback_is_refused_and_recorded(new_page):
    page = new_page()
    page.set_content('<img src="https://example.org/a.png">')
    page.wait_for_function("document.images[0].complete")
    assert page.blocked == ["https://example.org/a.png"]
    assert page.evaluate("document.images[0].naturalWidth") == 0


def test_a_failing_cell_is_told(lab, new_page):
    notebook(lab.root / "fails.ipynb", "1 / 0")
    page = new_page()
    open_notebook(page, lab, "fails.ipynb")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_all(page)
    close_notebook(page)

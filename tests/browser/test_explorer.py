"""The explorer in a real JupyterLab: sliders, pins, sweep, cancel, keep; and that all of it fits the screen."""

import json
import shutil
import time
from pathlib import Path

import nbformat
import pytest

from cxdbench.explorer.keeping import KEPT
from cxdbench.report import export

from ..live.conftest import needs_live
from .harness import (
    PROJECT,
    bokeh_data,
    close_notebook,
    open_notebook,
    press_slider,
    run_all,
    save,
    screenshot,
    wait_idle,
)

NAME = "00-start-here.ipynb"


def open_explorer(lab, new_page, width=1280, height=800, dark=False, cells=None):
    target = lab.root / NAME
    shutil.copy(PROJECT / "notebooks" / NAME, target)
    if cells is not None:
        content = nbformat.read(target, as_version=4)
        content.cells = content.cells[:cells]
        nbformat.write(content, target)
    page = new_page(width, height, dark=dark)
    open_notebook(page, lab, NAME)
    run_all(page)
    page.locator(".cxd-main").wait_for()
    page.locator(".cxd-main").evaluate("e => e.closest('.jp-OutputArea').scrollIntoView()")
    wait_idle(page)
    return page


def table(page) -> str:
    return page.locator(".cxd-right").inner_text()


def button(page, text):
    return page.locator(".cxd button", has_text=text).first


def holds(page, source) -> bool:
    return page.evaluate("name => (window.Bokeh?.documents ?? []).some(d => d.get_model_by_name(name))", source)


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)
    return value


@pytest.mark.parametrize("width, height", [(1280, 800), (1920, 1080)])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_one_screen(lab, new_page, width, height, dark):
    page = open_explorer(lab, new_page, width, height, dark, cells=2)
    screenshot(page, f"explorer-{width}-{'dark' if dark else 'light'}")
    box = page.locator(".cxd").first.bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= height and box["x"] + box["width"] <= width
    scrolls = page.evaluate("""() => [...document.querySelectorAll('.cxd, .cxd *')].filter(e => e.clientHeight > 40 &&
        ['auto', 'scroll'].includes(getComputedStyle(e).overflowY) && e.scrollHeight > e.clientHeight + 1)
        .map(e => e.className)""")
    assert scrolls == []
    assert page.errors == [] and page.blocked == []
    close_notebook(page)


def test_move_pin_sweep_cancel_keep_and_share(lab, new_page, tmp_path):
    page = open_explorer(lab, new_page, cells=2)
    figure = page.locator(".cxd-centre .bk-Figure:visible").first
    before, pixels, numbers = bokeh_data(page, "cdf"), figure.screenshot(), table(page)
    press_slider(page, "WSS, x", "ArrowLeft", times=6)
    until(lambda: bokeh_data(page, "cdf") != before and table(page) != numbers)
    wait_idle(page)
    assert figure.screenshot() != pixels
    moved = bokeh_data(page, "cdf")

    button(page, "Pin").click()
    until(lambda: "WSS 2.2" in table(page))
    button(page, "sweep").click()
    page.locator(".cxd .cxd-centre input[type=text]").nth(0).fill("0.5, 1.1")
    page.locator(".cxd .cxd-centre input[type=text]").nth(1).fill("1, 8")
    page.get_by_role("button", name="Sweep", exact=True).click()
    until(lambda: page.locator(".cxd-centre").inner_text().count("4 of 4"))
    until(lambda: holds(page, "heat-cells"))
    assert len(bokeh_data(page, "heat-cells")["value"]) == 4
    screenshot(page, "explorer-sweep")

    page.locator(".cxd .cxd-centre input[type=text]").nth(0).fill(", ".join(f"{2 + i / 10:.1f}" for i in range(20)))
    page.locator(".cxd .cxd-centre input[type=text]").nth(1).fill("8, 16, 32, 64")
    page.get_by_role("button", name="Sweep", exact=True).click()
    until(lambda: "of 80" in page.locator(".cxd-centre").inner_text())
    began = time.monotonic()
    page.get_by_role("button", name="Cancel", exact=True).click()
    until(lambda: "cancelled" in page.locator(".cxd-foot").inner_text())
    assert time.monotonic() - began < 3  # the sweep within a second; the rest is the browser's

    button(page, "CDF").click()
    button(page, "Keep in notebook").click()
    until(lambda: "kept" in page.locator(".cxd-foot").inner_text())
    wait_idle(page)
    save(page)
    close_notebook(page)
    assert page.errors == [] and page.blocked == []

    raw = json.loads((lab.root / NAME).read_text())
    kept = [o["data"] for c in raw["cells"] for o in c.get("outputs", []) if KEPT in o.get("data", {})]
    assert len(kept) == 1 and "<svg" in "".join(kept[0]["image/svg+xml"])
    state = kept[0][KEPT]["state"]
    assert state["setting"]["workload"]["wss"] == 2.2
    assert [pin["name"] for pin in state["pins"]] == ["ideal", "cylon", "cxdvirt, WSS 2.2"]
    assert len(kept[0][KEPT]["curves"]) == 4

    out = export(lab.root / NAME, tmp_path / "shared.html")
    shared = new_page(1280, 900)
    shared.goto(Path(out).as_uri())
    shared.locator(".bk-Figure").first.wait_for()
    until(lambda: bokeh_data(shared, "cdf") == moved)
    assert shared.blocked == [] and shared.errors == []


@needs_live
def test_real_memory_from_the_same_sliders(lab, new_page):
    page = open_explorer(lab, new_page, cells=2)
    page.locator(".cxd .cxd-left select").nth(0).wait_for()
    page.locator(".cxd-engine select").select_option(label="live")
    until(lambda: "noise floor" in table(page), seconds=90)
    wait_idle(page)
    assert "the model" in bokeh_data(page, "cdf-pins")["name"]
    assert "engine live" in " ".join(page.locator(".cxd-foot").inner_text().split())
    screenshot(page, "explorer-live")
    box = page.locator(".cxd").first.bounding_box()
    assert box["y"] + box["height"] <= 800 and box["x"] + box["width"] <= 1280
    assert page.errors == [] and page.blocked == []
    close_notebook(page)

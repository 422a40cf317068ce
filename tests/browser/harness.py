"""A real JupyterLab in a real browser, for tests.

    def test_slider(lab, new_page):                      # fixtures of tests/conftest.py
        shutil.copy("notebooks/00-start-here.ipynb", lab.root)
        page = new_page(1280, 800, dark=True)
        open_notebook(page, lab, "00-start-here.ipynb")  # the kernel is ready when this returns
        run_all(page)                                    # raises when a cell fails
        before = bokeh_data(page, "cdf")                 # a ColumnDataSource by its name
        press_slider(page, "WSS", "ArrowRight", times=5)
        wait_idle(page)
        assert bokeh_data(page, "cdf") != before
        screenshot(page, "start-here-dark")
        close_notebook(page)
        assert page.blocked == []                        # nothing asked another machine for anything

Every page refuses what is not loopback, and lists it in `page.blocked`; `page.errors` lists uncaught script errors.
"""

import contextlib
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: `make setup`")

from playwright.sync_api import Browser, Locator, Page, sync_playwright

PROJECT = Path(__file__).resolve().parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    # Names are not even looked up: what is not loopback cannot be reached by any road.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
READY_S = 60
CELLS_S = 240


class NoBrowser(Exception):
    """There is no chromium; the message says what installs it."""


@dataclass(frozen=True)
class Lab:
    url: str
    token: str
    root: Path
    log: Path


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start headless chromium, the one in CXD_CHROMIUM or the first on the path; NoBrowser if there is none."""
    names = [os.environ["CXD_CHROMIUM"]] if "CXD_CHROMIUM" in os.environ else CHROMIUM_NAMES
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        raise NoBrowser(f"there is no {' or '.join(names)} here: `sudo apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


def new_page(browser: Browser, width: int = 1280, height: int = 800, dark: bool = False) -> Page:
    """A page of its own context. `dark` is the system's colour scheme, and Lab's theme in open_notebook."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.blocked, page.errors, page.dark = [], [], dark

    def guard(route) -> None:
        address = urlsplit(route.request.url)
        if address.scheme in ("data", "blob", "file") or address.hostname == "127.0.0.1":
            route.continue_()
        else:
            page.blocked.append(route.request.url)
            route.abort()

    context.route("**/*", guard)
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    return page


@contextlib.contextmanager
def start_lab(root: Path) -> Iterator[Lab]:
    """The Lab of `make lab`, on `root` and a free port, knowing nothing of the user's own settings."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token, own = secrets.token_hex(16), root / ".jupyter"
    folders = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    env = os.environ | {f"JUPYTER_{name}": str(own / folder) for name, folder in folders.items()}
    env |= {
        "JUPYTERLAB_SETTINGS_DIR": str(own / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(own / "workspaces"),
    }
    env |= {"JUPYTER_TOKEN": token, "IPYTHONDIR": str(own / "ipython")}
    own.mkdir()
    command = [
        sys.executable, str(PROJECT / "tools/lab.py"), "--no-browser", f"--port={port}", "--ServerApp.port_retries=0",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    lab = Lab(f"http://127.0.0.1:{port}", token, root, own / "lab.log")
    with lab.log.open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=root)
    try:
        await_server(lab, server)
        yield lab
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def await_server(lab: Lab, server: subprocess.Popen) -> None:
    end = time.monotonic() + READY_S
    while True:
        try:
            urllib.request.urlopen(f"{lab.url}/api/status?token={lab.token}", timeout=2).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"JupyterLab did not start:\n{lab.log.read_text()[-3000:]}") from None
            time.sleep(0.1)


def ask(page: Page, script: str, argument=None, timeout_s: float = READY_S):
    """Evaluate an async function in the page, as page.evaluate does, but never wait for ever.

    The function gets (argument, app, panel): Lab's application and the notebook open in it. AssertionError shows
    what dialog stood in the way, if one did.
    """
    answer = page.evaluate(
        f"""async ([argument, timeout]) => {{
            const app = window.jupyterapp, late = Symbol();
            const answer = await Promise.race([
                ({script})(argument, app, app.shell.currentWidget),
                new Promise(done => setTimeout(() => done(late), timeout)),
            ]);
            return answer === late ? {{late: document.querySelector('.jp-Dialog')?.innerText ?? ''}} : {{answer}};
        }}""",
        [argument, timeout_s * 1000],
    )
    assert "late" not in answer, (
        f"JupyterLab did not answer in {timeout_s} s; its dialog: {answer['late'] or 'none'}"
    )
    return answer.get("answer")


def open_notebook(page: Page, lab: Lab, name: str) -> None:
    """Open lab.root/name as `make lab` does, in the theme of `page.dark`, and wait until its kernel answers.

    The notebook must name its kernel (metadata.kernelspec), or Lab asks a person.
    """
    page.goto(f"{lab.url}/doc/tree/{name}?token={lab.token}&reset", timeout=READY_S * 1000)
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext", timeout=READY_S * 1000
    )
    ask(
        page,
        """async (dark, app, panel) => {
            await app.commands.execute('apputils:change-theme', {theme: dark ? 'JupyterLab Dark' : 'JupyterLab Light'});
            await panel.context.ready;
            await panel.sessionContext.ready;
            await panel.sessionContext.session.kernel.info;
        }""",
        page.dark,
    )
    wait_idle(page)


def run_all(page: Page) -> None:
    """Run every cell and wait for the last; AssertionError tells which cell failed and how."""
    failed = ask(
        page,
        """async (_, app, panel) => {
            await app.commands.execute('notebook:run-all-cells');
            return panel.content.widgets.filter(c => c.model.type === 'code').flatMap(c => c.model.outputs.toJSON()
                .filter(o => o.output_type === 'error').map(o => `${o.ename}: ${o.evalue}`));
        }""",
        timeout_s=CELLS_S,
    )
    assert not failed, f"cells failed: {failed}"
    wait_idle(page)


def wait_idle(page: Page, quiet_s: float = 0.4, timeout_s: float = CELLS_S) -> None:
    """Wait until the kernel has been idle for `quiet_s` without a break, and what it sent has been drawn."""
    ask(
        page,
        """async (quiet, app, panel) => {
            const kernel = panel.sessionContext.session.kernel;
            for (let since = performance.now(); performance.now() - since < quiet;) {
                await new Promise(done => setTimeout(done, 20));
                if (kernel.status !== 'idle') since = performance.now();
            }
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        }""",
        quiet_s * 1000,
        timeout_s,
    )


def slider(page: Page, label: str) -> Locator:
    """The handle of the ipywidgets slider whose description is exactly `label`."""
    exact = page.locator(".widget-label", has_text=re.compile(rf"^\s*{re.escape(label)}\s*$"))
    return page.locator(".widget-slider").filter(has=exact).locator("[role=slider]").first


def press_slider(page: Page, label: str, key: str = "ArrowRight", times: int = 1) -> None:
    """Move the slider `label` by keyboard, as a person does; follow it with wait_idle."""
    slider(page, label).focus()
    for _ in range(times):
        page.keyboard.press(key)


def slider_value(page: Page, label: str) -> float:
    """Where the slider stands, on its own scale (a log slider's is the exponent, a selection's the index)."""
    return float(slider(page, label).get_attribute("aria-valuenow"))


def bokeh_data(page: Page, source: str) -> dict[str, list]:
    """The columns of the newest ColumnDataSource(name=source) that the page's BokehJS holds."""
    data = page.evaluate(
        """name => {
            const holders = (window.Bokeh?.documents ?? []).map(d => d.get_model_by_name(name)).filter(m => m);
            if (!holders.length) return null;
            return Object.fromEntries([...Object.entries(holders.at(-1).data)].map(([k, v]) => [k, Array.from(v)]));
        }""",
        source,
    )
    assert data is not None, f"no Bokeh document on the page holds a source named {source!r}"
    return data


def screenshot(page: Page, name: str) -> Path:
    """Save what the window shows as screenshots/NAME.png, or in the folder CXD_SCREENSHOTS; return the path."""
    folder = Path(os.environ.get("CXD_SCREENSHOTS") or PROJECT / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    return path


def save(page: Page) -> None:
    """Save the notebook, widget state included, and wait until it is on disk."""
    ask(page, "async (_, app) => { await app.commands.execute('docmanager:save'); }")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")


def close_notebook(page: Page) -> None:
    """Shut the kernel down and leave; unsaved changes are dropped."""
    ask(page, "async (_, app, panel) => await panel.sessionContext.shutdown()")
    page.goto("about:blank")

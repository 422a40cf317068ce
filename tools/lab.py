"""JupyterLab on this machine only, behind a fresh token, on the notebook to start with.

    .venv/bin/python tools/lab.py [any option of jupyter lab]      (from the project's folder)

Lab's page asks no other host for anything. Its settings that matter here are laid into .venv as defaults, so a
user's own settings stay untouched and still win.
"""

import json
import os
import sys
from pathlib import Path

START = "notebooks/00-start-here.ipynb"
DEFAULTS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # A notebook saved with its sliders can be exported by `cxdbench report` as it stood.
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
}


def main() -> None:
    overrides = Path(sys.prefix) / "share/jupyter/lab/settings/overrides.json"
    overrides.parent.mkdir(parents=True, exist_ok=True)
    overrides.write_text(json.dumps(DEFAULTS, indent=1))
    # /doc is Lab with one document and its side bars folded: the explorer gets the whole width.
    options = [
        "--ip=127.0.0.1", f"--LabApp.default_url=/doc/tree/{START}",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    if not can_show():
        options.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    sys.argv = ["jupyter-lab", *options, *sys.argv[1:]]
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance()


def can_show() -> bool:
    """Whether a browser can open a window here; on Linux without a display it would open in the terminal."""
    return not sys.platform.startswith("linux") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    )


if __name__ == "__main__":
    main()

"""The widget workbench: `explore()`."""
from __future__ import annotations

from typing import Any

from cxdbench.explorer.keeping import read_state
from cxdbench.explorer.state import State
from cxdbench.explorer.workbench import Workbench


def explore(state: dict[str, Any] | str | None = None) -> Workbench:
    """Sliders for a device and a workload, and what they do to latency; the last expression of a notebook's cell.

    state: what the explorer exported or kept: a dict, its JSON text, an exported .json file, or the notebook in whose
    output it was kept. Raises ConfigError where it does not fit.
    """
    return Workbench(State() if state is None else read_state(state))

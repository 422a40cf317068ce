"""The widget workbench: `explore()`."""
from __future__ import annotations

from typing import Any

from cxdbench.explorer.state import State
from cxdbench.explorer.workbench import Workbench


def explore(state: dict[str, Any] | str | None = None) -> Workbench:
    """Sliders for a device and a workload, and what they do to latency; the last expression of a notebook's cell.

    state: what the explorer exported or kept, as a dict or its JSON text. Raises ConfigError where it does not fit.
    """
    return Workbench(State() if state is None else State.from_dict(state))

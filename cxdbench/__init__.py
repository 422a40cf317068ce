"""cxdbench: see, in a notebook, what a CXL-SSD does to a workload.

`run` takes a `Device` and a workload (`Chase`, `Zipf`, `Trace`) to a labelled Dataset; `plot`, `sweep` and `explore`
start from there. Names are loaded when first used, so that importing the package is quick.
"""
import sys
from importlib import import_module
from types import ModuleType

_HOME = {
    "Device": "device", "Nand": "device", "ConfigError": "device",
    "Chase": "workload", "Zipf": "workload", "Trace": "workload",
    "run": "run", "Control": "control", "Cancelled": "control",
    "check": "result", "event_log": "result", "open_result": "result", "save_result": "result",
    "open_device": "live.memory", "LiveError": "live.binding",
    "summary": "summary", "sweep": "sweep", "explore": "explorer",
}
_MODULES = ("plot", "report")
__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str):
    if name in _HOME:
        value = getattr(import_module(f"cxdbench.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"cxdbench.{name}")
    else:
        raise AttributeError(f"module 'cxdbench' has no attribute {name!r}; it has: {', '.join(sorted(__all__))}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Importing cxdbench.run must not put the module where the function `cxdbench.run` is found."""

    def __setattr__(self, name: str, value) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

"""The house: imports only downward, jitted modules free of xarray and pydantic, small files."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cxdbench"
# Lowest first. A module may import what stands on a lower floor, or on its own floor to its left.
FLOORS = """
_data settings jit bins control
device
cpucache lackey trace workload
summary result bands
model live
run
axes grid sweep published zswap programs
diagrams plot
explorer
report_widgets report_html report cli warm
"""
ORDER = {unit: rank for rank, unit in enumerate(FLOORS.split())}
MODULES = sorted(PACKAGE.rglob("*.py"))
# These hold no jitted function: they turn models and arrays into one another.
MODEL_EDGES = {"cxdbench.model.engine", "cxdbench.model.inputs"}
HEAVY = {"xarray", "pydantic"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 250


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in MODULES}
SOURCES = [
    path for folder in ("cxdbench", "tests", "tools") for path in sorted((ROOT / folder).rglob("*.py"))
]


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module that `path` imports, wherever in the file it does so."""
    found = set()
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in NAMES else source for name in names}
    return frozenset(found)


def unit_of(module: str) -> str:
    """The unit of the house a module belongs to: the first name below cxdbench."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_only_downward(path):
    unit = unit_of(name_of(path))
    if not unit:
        return  # cxdbench/__init__.py is the door, above all floors
    assert unit in ORDER, f"{name_of(path)} has no floor: give it one in FLOORS"
    for module in imports(path):
        if module.split(".")[0] != "cxdbench":
            continue
        below = unit_of(module)
        assert below, f"{name_of(path)} imports the package's door; import the module itself"
        assert below == unit or ORDER[below] < ORDER[unit], (
            f"{name_of(path)} imports {module}, which is not below it"
        )


def test_jitted_modules_need_no_xarray_and_no_pydantic():
    """Followed through what they import of this package, since an import brings its imports along."""
    paths = {name_of(path): path for path in MODULES}
    jitted = [name for name in NAMES if name.startswith("cxdbench.model.") and name not in MODEL_EDGES]
    assert jitted
    for start in jitted:
        seen, todo = set(), [start]
        while todo:
            name = todo.pop()
            seen.add(name)
            bad = {module for module in imports(paths[name]) if module.split(".")[0] in HEAVY}
            assert not bad, f"{start} needs {bad} through {name}"
            todo += [module for module in imports(paths[name]) if module in paths and module not in seen]


def test_the_explorers_state_knows_no_widget():
    for path in MODULES:
        if name_of(path) == "cxdbench.explorer.state":
            used = {module.split(".")[0] for module in imports(path)}
            assert not used & {"ipywidgets", "bokeh", "jupyter_bokeh", "IPython"}
            return
    pytest.fail("cxdbench/explorer/state.py is gone: where is the explorer's state without widgets now?")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_jitted_functions_are_small(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_FILE_LINES
    if path.parent == PACKAGE / "model":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                length = node.end_lineno - node.lineno + 1
                assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"

"""Set-up: the two lists of packages agree, a wheel holds what is needed, and set-up runs exactly when it must."""

import importlib.metadata
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
# What conda can give beyond packages of Python.
CONDA_ONLY = {"python", "pip", "c-compiler", "make"}


def packages(lines: list[str]) -> dict[str, SpecifierSet]:
    parsed = map(Requirement, lines)
    return {canonicalize_name(one.name): one.specifier for one in parsed}


def test_conda_and_pyproject_ask_for_the_same():
    by_conda = packages([line for line in CONDA if isinstance(line, str)])
    [by_pip] = [line["pip"] for line in CONDA if isinstance(line, dict)]
    assert "-e ." in by_pip
    assert set(by_conda) >= CONDA_ONLY
    assert by_conda["python"] == SpecifierSet(PROJECT["requires-python"])
    asked = {name: bound for name, bound in by_conda.items() if name not in CONDA_ONLY}
    asked |= packages([line for line in by_pip if line != "-e ."])
    assert asked == packages(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"])


def test_every_dependency_has_its_reason():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for line in itertools.chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        assert re.search(rf'^ *"{re.escape(line)}", +# .+$', text, re.M), f"{line} has no reason beside it"


def test_bounds_are_met_here():
    for line in PROJECT["dependencies"]:
        need = Requirement(line)
        assert need.specifier.contains(importlib.metadata.version(need.name)), line


def build_wheel(folder: Path, **environment: str) -> tuple[Path, Path]:
    """The wheel of a copy of the sources, and it unpacked; built with the setuptools at hand, so without a network."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("cxdbench", "data", "kmod"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "-w", str(folder), str(source)], check=True, capture_output=True, env=os.environ | environment)
    [built] = folder.glob("*.whl")
    zipfile.ZipFile(built).extractall(folder / "installed")
    return built, folder / "installed"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_is_for_any_python(wheel):
    assert "-py3-none-" in wheel[0].name


def test_without_a_compiler_the_package_still_installs_and_says_what_is_missing(tmp_path):
    _, installed = build_wheel(tmp_path, CC="no-such-compiler")
    assert not list(installed.rglob("*.so"))
    code = (f"import sys; sys.path[:0] = [{str(installed)!r}]\n"
            "import cxdbench as cxd\n"
            "try:\n    cxd.run(cxd.Device(), cxd.Chase(), 'live')\nexcept cxd.ConfigError as error:\n    print(error)\n")
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "apt-get install gcc" in run.stdout and "make setup" in run.stdout


def test_the_wheel_holds_every_module_data_file_and_template(wheel):
    def files(folder: Path) -> set[str]:
        found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(folder)) for path in found if path.suffix != ".md"}

    expected = files(ROOT / "cxdbench") | {f"data/{name}" for name in files(ROOT / "data")}
    assert files(wheel[1] / "cxdbench") == expected


def test_the_installed_wheel_finds_its_data(wheel, tmp_path):
    code = (
        f"import sys; sys.path[:0] = [{str(wheel[1])!r}]\n"
        "import cxdbench; from cxdbench._data import data_path\n"
        "print(data_path('nand.toml')); print(cxdbench.Device.named('cxdvirt').nand.read_us)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[0] == str(wheel[1] / "cxdbench/data/nand.toml")


def test_a_missing_data_file_is_named():
    from cxdbench._data import data_path

    with pytest.raises(FileNotFoundError, match=r"'no-such\.toml'"):
        data_path("no-such.toml")


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """tools/bootstrap.py on a project of its own, its slow steps replaced by a list of what it would have done."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools/bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in (*module.INPUTS, "cxdbench/warm.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    done = []

    def make_venv():
        done.append("venv")
        shutil.rmtree(tmp_path / ".venv", ignore_errors=True)
        (tmp_path / ".venv").mkdir()

    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv/stamp.json")
    monkeypatch.setattr(module, "make_venv", make_venv)
    monkeypatch.setattr(module, "install", lambda extras: done.append(f"install {','.join(extras)}".strip()))
    monkeypatch.setattr(module, "warm", lambda: done.append("warm") or True)

    def run(extras: str = "") -> list[str]:
        monkeypatch.setattr(sys, "argv", ["bootstrap.py", "--extras", extras])
        done.clear()
        module.main()
        return list(done)

    run.root, run.module = tmp_path, module
    return run


def test_set_up_runs_once(bootstrap):
    assert bootstrap("dev") == ["venv", "install dev", "warm"]
    assert bootstrap("dev") == []


def test_extras_are_counted_and_never_dropped(bootstrap):
    assert bootstrap() == ["venv", "install", "warm"]
    assert bootstrap("dev") == ["install dev"]
    assert bootstrap() == []
    assert bootstrap("bench") == ["install bench,dev"]


def test_changed_inputs_install_again_and_changed_sources_only_warm(bootstrap):
    bootstrap("dev")
    (bootstrap.root / "pyproject.toml").write_text("2")
    assert bootstrap() == ["install dev"]
    (bootstrap.root / "cxdbench/warm.py").write_text("2")
    assert bootstrap() == ["warm"]


def test_another_python_or_folder_makes_the_environment_anew(bootstrap, monkeypatch):
    bootstrap("dev")
    monkeypatch.setattr(bootstrap.module, "environment_key", lambda: "another")
    assert bootstrap("dev") == ["venv", "install dev", "warm"]


def test_an_old_python_is_told_what_to_do(bootstrap, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer.*make PYTHON="):
        bootstrap()


def test_no_way_to_an_environment_is_one_sentence_with_its_mend(bootstrap, monkeypatch):
    tried = []
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools/bootstrap.py")
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    monkeypatch.setattr(fresh, "VENV", bootstrap.root / ".venv")
    monkeypatch.setattr(fresh, "run", lambda *command, quiet=False: tried.append(command))
    monkeypatch.setattr(fresh.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install python3-venv"):
        fresh.make_venv()
    assert len(tried) >= 2

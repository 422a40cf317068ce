"""CI's rule that a skipped test is a failed one, on tests of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest

def test_passes(): pass

@pytest.mark.skip(reason="no chromium")
def test_skipped(): pass

def test_skips_itself(): pytest.skip("no tracer")

@pytest.mark.may_skip("needs a loaded cxd.ko")
def test_may_skip(): pytest.skip("no module")

@pytest.mark.xfail
def test_expected_to_fail(): assert False
"""
WHOLE_FILE = 'import pytest\npytest.importorskip("no_such_package")\n'


@pytest.mark.parametrize(
    ("setting", "counts"),
    [
        ({}, {"passed": 1, "skipped": 4, "xfailed": 1}),
        ({"CXD_REQUIRE_ALL": "1"}, {"passed": 1, "failed": 1, "skipped": 1, "xfailed": 1, "errors": 2}),
        ({"CI": "true"}, {"passed": 1, "failed": 1, "skipped": 1, "xfailed": 1, "errors": 2}),
        ({"CI": "false", "CXD_REQUIRE_ALL": "0"}, {"passed": 1, "skipped": 4, "xfailed": 1}),
    ],
)
def test_a_skip_fails_where_everything_is_required(tmp_path, setting, counts):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_whole_file.py").write_text(WHOLE_FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = may_skip: why\n")
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("CI", "CXD_REQUIRE_ALL", "PYTEST_ADDOPTS")
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--continue-on-collection-errors",
        "-p",
        "no:cacheprovider",
    ]
    run = subprocess.run(command, cwd=tmp_path, env=env | setting, capture_output=True, text=True)
    last = run.stdout.splitlines()[-1].split(" in ")[0]
    assert {word: int(number) for number, word in map(str.split, last.split(", "))} == counts, run.stdout
    assert (run.returncode == 0) == ("failed" not in counts)

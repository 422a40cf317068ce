"""Where everything is required (CI, or CXD_REQUIRE_ALL=1), a skipped test is a failed one.

It stands at the root so that the notebooks' cells are under it as well. A test that may be missing even there,
and only such a one, says why: `@pytest.mark.may_skip("needs a loaded cxd.ko")`.
"""

import os

import pytest


def require_all() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true") or os.environ.get("CXD_REQUIRE_ALL") == "1"


def forbid_skip(report) -> None:
    # An expected failure is reported as skipped too; it did run.
    if require_all() and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"a required test was skipped: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    if not item.get_closest_marker("may_skip"):
        forbid_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    outcome = yield
    forbid_skip(outcome.get_result())

"""Fixtures that more than one folder of tests uses."""

import pytest

from .browser import harness


@pytest.fixture(scope="session")
def chromium():
    """A running headless chromium (playwright's Browser); skips, with what mends it, where there is none."""
    try:
        with harness.chromium() as browser:
            yield browser
    except harness.NoBrowser as missing:
        pytest.skip(str(missing))


@pytest.fixture
def new_page(chromium):
    """`new_page(width=1280, height=800, dark=False)`: a page that can reach this machine and no other."""
    contexts = []

    def make(width: int = 1280, height: int = 800, dark: bool = False) -> harness.Page:
        page = harness.new_page(chromium, width, height, dark)
        contexts.append(page.context)
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """One JupyterLab for the whole session, on an empty folder `lab.root`: copy notebooks there."""
    with harness.start_lab(tmp_path_factory.mktemp("lab")) as server:
        yield server

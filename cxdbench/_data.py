"""Where the data files are: inside the package once installed from a wheel, beside it in a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
FOLDERS = (PACKAGE / "data", PACKAGE.parent / "data")


def data_path(name: str) -> Path:
    """Path of the data file `name`, such as "nand.toml"; FileNotFoundError names it when there is none."""
    for folder in FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"cxdbench has no data file {name!r} in {' or '.join(map(str, FOLDERS))}")

"""Run every notebook and write each as one offline HTML file into reports/."""

import sys
from pathlib import Path

from cxdbench.report import ReportError, export

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not notebooks:
        sys.exit(f"there is no notebook in {ROOT / 'notebooks'} to report on")
    reports = ROOT / "reports"
    reports.mkdir(exist_ok=True)
    failed = 0
    for notebook in notebooks:
        try:
            out = export(notebook, reports / f"{notebook.stem}.html", execute=True)
            print(f"{out.relative_to(ROOT)}  {out.stat().st_size / 1e6:.1f} MB", flush=True)
        except ReportError as error:
            failed += 1
            print(error, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

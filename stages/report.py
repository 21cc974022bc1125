"""artifacts of every corpus -> the page, metrics.json, plots and tables; prints the verdicts."""

import sys
from pathlib import Path

from spanwise import layout, params
from spanwise.reporting.build import PAGE, report
from spanwise.reporting.terminal import verdicts


def main() -> None:
    settings = params.load()
    print(verdicts(report(Path(), settings), settings, PAGE))
    if left := layout.leftovers(settings.corpora):
        print(
            f"note: artifacts/ holds results of {', '.join(left)}, not in params.yaml; a clone "
            "without them would build this report anew. Before you share it: rm -r "
            f"{' '.join(f'artifacts/*/{name}' for name in left)} && dvc repro", file=sys.stderr,
        )


if __name__ == "__main__":
    layout.run(main)

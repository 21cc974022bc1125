"""artifacts of every corpus -> the page, metrics.json, plots and tables; prints the verdicts."""

from pathlib import Path

from spanwise import layout, params
from spanwise.reporting.build import PAGE, report
from spanwise.reporting.terminal import verdicts


def main() -> None:
    settings = params.load()
    print(verdicts(report(Path(), settings), settings, PAGE))


if __name__ == "__main__":
    layout.run(main)

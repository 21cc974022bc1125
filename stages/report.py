"""artifacts of every corpus -> the page, metrics.json, plots and tables."""

from pathlib import Path

from spanwise import layout, params
from spanwise.reporting.build import report


def main() -> None:
    report(Path(), params.load())


if __name__ == "__main__":
    layout.run(main)

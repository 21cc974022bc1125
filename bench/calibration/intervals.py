"""Coverage, false positives, family-wise error and power of the inference, by simulation.

    python -m bench.calibration.intervals [--studies 10000] [--draws 2000] [--only 'rare-*@60']
    python -m bench.calibration.intervals --report

Every block of 100 studies is one JSON line; a run that was stopped goes on where it ended. Seeds
follow from design, documents and block, so a block gives the same line whenever it runs. Set
OMP_NUM_THREADS=1 and run several with different --only and --out to use more cores; --report reads
every file that it is given.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from pathlib import Path

from bench.calibration.designs import DESIGNS, DOCUMENTS
from bench.calibration.studies import CANDIDATES, blocks, count, seeds
from bench.calibration.tables import report

from spanwise.statistics.linearised import FEW

SIZE = 100     # studies of a block: they share their bootstrap draws
ROUND = 10     # blocks of a cell before the next cell: a run that is stopped has some of each


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=10_000, help="of each design and size")
    parser.add_argument("--draws", type=int, default=2_000, help="bootstrap draws of a study")
    parser.add_argument("--only", default="*", help="pattern of design@documents")
    parser.add_argument("--out", type=Path, nargs="+", default=[Path("calibration.jsonl")])
    parser.add_argument("--report", action="store_true", help="print the tables of what is there")
    parser.add_argument("--few", type=int, default=FEW, help="percentiles are of record from here")
    parser.add_argument("--below", default="linearised", choices=["linearised", *CANDIDATES],
                        help="interval of record below it")
    options = parser.parse_args(arguments)
    if not options.report:
        run(options.out[0], options.studies, options.draws, options.only)
    lines = [line for path in options.out for line in held(path)]
    print(report(lines, options.few, options.below))
    return 0


def run(out: Path, studies: int, draws: int, only: str) -> None:
    """Append the blocks that `out` lacks."""
    lines = held(out)
    # A run that was killed may have left half a line.
    out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = {(x["design"], x["documents"], x["block"], x["studies"], x["draws"]) for x in lines}
    cells = [
        (name, documents)
        for documents in DOCUMENTS
        for name in DESIGNS
        if fnmatch.fnmatch(f"{name}@{documents}", only)
    ]
    wanted = [
        (name, documents, block, size, draws)
        for begin in range(0, studies, ROUND * SIZE)
        for name, documents in cells
        for block, size in blocks(studies, SIZE)
        if begin <= block * SIZE < begin + ROUND * SIZE
    ]
    missing = [block for block in wanted if block not in done]
    start = time.monotonic()
    with out.open("a", encoding="utf-8") as file:
        for i, (name, documents, block, size, _) in enumerate(missing, start=1):
            line = {
                "design": name, "documents": documents, "block": block, "studies": size,
                "draws": draws, "seed": seeds(name, documents, block),
                "truth": DESIGNS[name].law(documents).truth().tolist(),
                "tally": count(DESIGNS[name], documents, block, size, draws),
            }
            file.write(json.dumps(line) + "\n")
            file.flush()
            if i % 100 == 0 or i == len(missing):
                print(f"{i} of {len(missing)} blocks, {time.monotonic() - start:.0f} s",
                      file=sys.stderr, flush=True)


def held(path: Path) -> list[dict]:
    """Whole lines of a file, none where it is not there."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break  # the last one, half written
    return found


if __name__ == "__main__":
    sys.exit(main())

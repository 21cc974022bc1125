"""How often two conditions are called equivalent whose true difference is the margin itself: 5%.

    python -m bench.calibration.equivalence [--studies 2000] [--draws 2000]

The designs with one contrast and an effect, the margin set to that effect: the 90% interval of
record must then lie within it in 5% of studies, and less often beyond. Beside it what is left where
the interval counts for nothing: few documents show any difference, or a few hold most questions.
"""

from __future__ import annotations

import argparse

import numpy as np
from bench.calibration.designs import DESIGNS
from bench.calibration.studies import blocks, seeds, simulate

from spanwise.statistics.bootstrap import replicates
from spanwise.statistics.cautions import dominated, scarce
from spanwise.statistics.linearised import FEW, errors

DOCUMENTS = (5, 20, 30, 60, 200)
SIZE = 100


def rates(name: str, documents: int, studies: int, draws: int) -> tuple[float, float]:
    """Shares of studies called equivalent: by the interval alone, and where it is trusted."""
    from scipy.stats import t

    alone, trusted = 0, 0
    for block, size in blocks(studies, SIZE):
        made = simulate(DESIGNS[name], documents, block, size)
        margin = abs(float(made.truth[0]))
        sums, counts = made.sums[0], made.counts
        if documents < FEW:
            means, se = errors(sums, counts)
            half = float(t.ppf(0.95, documents - 1)) * se
            low, high = means - half, means + half
        else:
            rng = np.random.default_rng([*seeds(name, documents, block), 1])
            low, high = np.percentile(replicates(sums, counts, draws, rng), [5, 95], axis=1)
        # Without width an interval is no evidence, whatever it lies within.
        same = (-margin < low) & (high < margin) & (high - low > 1e-12)
        unsure = np.array([scarce(s) or dominated(n) for s, n in zip(sums, counts, strict=True)])
        alone += int(same.sum())
        trusted += int((same & ~unsure).sum())
    return alone / studies, trusted / studies


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2_000, help="of each design and size")
    parser.add_argument("--draws", type=int, default=2_000, help="bootstrap draws of a study")
    options = parser.parse_args(arguments)
    names = [
        name for name, design in DESIGNS.items()
        if name.endswith("-effect") and len(design.law(20).truth()) == 1
    ]
    print(f"| design | {' | '.join(map(str, DOCUMENTS))} |")
    print("|---" * (len(DOCUMENTS) + 1) + "|")
    for name in names:
        cells = [rates(name, n, options.studies, options.draws) for n in DOCUMENTS]
        told = " | ".join(f"{100 * a:.1f} ({100 * b:.1f})" for a, b in cells)
        print(f"| {name} | {told} |", flush=True)


if __name__ == "__main__":
    main()

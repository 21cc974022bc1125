"""Whether a few units hold everything that some sufficient set of spans asks for."""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.measures.places import Place, covered, length, need

UNITS = 3
"""How many units are looked at."""


def sufficient(
    ranked: Sequence[Place],
    evidence: Sequence[Place],
    bundles: Sequence[Sequence[int]] = (),
    k: int = UNITS,
) -> float:
    """1 if one of the first k units alone holds every span of some bundle whole, else 0.

    bundles: lists of indices into `evidence`, none empty; no bundles means one of all evidence.
    raises:  NoEvidence if there are no spans: undefined, not zero; ValueError for an empty bundle.
    """
    need(evidence)
    return float(any(_holds([unit], evidence, bundles) for unit in ranked[:k]))


def bundle_coverage(
    ranked: Sequence[Place],
    evidence: Sequence[Place],
    bundles: Sequence[Sequence[int]] = (),
    k: int = UNITS,
) -> float:
    """1 if the first k units together hold every span of some bundle whole, else 0.

    Units of one document are merged where they overlap or touch; a gap between them is a gap even
    if it holds nothing but white space, and repeating a fragment fills none.

    bundles, raises: as for `sufficient`.
    """
    return float(_holds(ranked[:k], evidence, bundles))


def _holds(
    units: Sequence[Place], evidence: Sequence[Place], bundles: Sequence[Sequence[int]]
) -> bool:
    need(evidence)
    if not all(bundles):
        raise ValueError("an empty bundle would be held by anything; leave it out")
    whole = [covered(units, span) == length(span) for span in evidence]
    return any(all(whole[i] for i in bundle) for bundle in bundles or [range(len(evidence))])

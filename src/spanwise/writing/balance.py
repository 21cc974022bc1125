"""As many questions of each type as a cap lets in, spread over documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanwise.writing.funnel import Record
from spanwise.writing.sampling import TYPES

CAP = 250
"""Questions of each type, as in the study."""


def balance(records: Sequence[Record], cap: int = CAP, seed: int = 20260710) -> list[Record]:
    """The survivors that become the benchmark.

    Of each type at most `cap`. Documents take turns in a drawn order, one question a turn, so that
    within a type no document has two more questions than one that still had some to give. Where the
    cap lets everything in, all survivors are final.
    returns: sorted by sample id; the same whatever the order of `records`.
    raises:  ValueError if cap < 1.
    """
    if cap < 1:
        raise ValueError(f"cap is {cap}, expected 1 or more")
    chosen: list[Record] = []
    for number, kind in enumerate(TYPES):
        rng = np.random.default_rng([seed, number])
        own = sorted(
            (r for r in records if r.survived and r.sample.type == kind),
            key=lambda r: r.sample.sample_id,
        )
        shuffled = [own[i] for i in rng.permutation(len(own))]
        turns: dict[str, int] = {}
        keyed = []
        for place, record in enumerate(shuffled):
            turn = turns.get(record.sample.doc_id, 0)
            turns[record.sample.doc_id] = turn + 1
            keyed.append((turn, place, record))
        chosen += [record for _, _, record in sorted(keyed, key=lambda k: k[:2])[:cap]]
    return sorted(chosen, key=lambda r: r.sample.sample_id)

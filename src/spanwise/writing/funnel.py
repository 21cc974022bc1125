"""What became of every sample, and the counts at each step by type.

A record never leaves: the funnel is counted from the records, so no step can lose one silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spanwise.documents.model import Question
from spanwise.writing.leakage import Verdict
from spanwise.writing.sampling import TYPES, Sample

Outcome = Literal[
    "unanswered", "malformed", "rouge-l", "4-gram", "named",
    "not paraphrased", "malformed again", "rouge-l again", "4-gram again", "named again",
    "repeated", "survived",
]

STEPS = (
    "sampled", "asked", "answered", "malformed", "rejected: rouge-l", "rejected: 4-gram",
    "rejected: names the referent", "paraphrases asked", "paraphrased", "paraphrases malformed",
    "rejected again: rouge-l", "rejected again: 4-gram", "rejected again: names the referent",
    "rejected: repeats another question", "survivors", "finals",
)
"""Rows of the funnel. asked - answered had no answer; answered - malformed - rejected went on to be
paraphrased, and so again; survivors - finals were beyond the cap."""

QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True, slots=True)
class Record:
    """One sample on its way.

    question:   the first wording, "" if there is none.
    paraphrase: the wording that ships, "" if there is none.
    first, again: what the filter found in the two rounds; None where it was not reached.
    outcome:    where it ended.
    detail:     why, for malformed ones: what was wrong; for `named`: the names.
    """

    sample: Sample
    question: str
    paraphrase: str
    first: Verdict | None
    again: Verdict | None
    outcome: Outcome
    detail: str = ""

    @property
    def survived(self) -> bool:
        """True if it may become a question of the benchmark."""
        return self.outcome == "survived"

    def as_question(self) -> Question:
        """The question that ships, with evidence on body, all of it needed.

        raises: ValueError unless it survived.
        """
        if not self.survived:
            raise ValueError(f"{self.sample.sample_id} ended as {self.outcome!r}: it does not ship")
        evidence = self.sample.evidence
        return Question(
            self.sample.sample_id, self.sample.doc_id, self.paraphrase, self.sample.type, evidence,
            (tuple(range(len(evidence))),),
        )


def funnel(
    records: Sequence[Record], finals: Collection[str] = (),
    sampled: Mapping[str, int] | None = None,
) -> dict[str, dict[str, int]]:
    """Counts by step, then type and `all`.

    finals:  sample ids that balancing kept.
    sampled: samples by type, where records without an answer were left out of `records`.
    raises:  ValueError if `sampled` is less than the records of a type, or a final did not survive.
    """
    if strangers := set(finals) - {r.sample.sample_id for r in records if r.survived}:
        raise ValueError(f"{sorted(strangers)[0]!r} is final and did not survive")
    rows: dict[str, Counter[str]] = {step: Counter() for step in STEPS}
    for kind in TYPES:
        own = [r for r in records if r.sample.type == kind]
        ended = Counter(r.outcome for r in own)
        drawn = len(own) if sampled is None else sampled.get(kind, 0)
        if drawn < len(own):
            raise ValueError(f"{drawn} {kind} samples, but {len(own)} records of them")
        answered = len(own) - ended["unanswered"]
        passed = sum(
            r.first is not None and r.first.reason is None and r.outcome != "named" for r in own
        )
        counts = (
            drawn, drawn, answered, ended["malformed"], ended["rouge-l"], ended["4-gram"],
            ended["named"], passed, passed - ended["not paraphrased"],
            ended["malformed again"], ended["rouge-l again"], ended["4-gram again"],
            ended["named again"], ended["repeated"], ended["survived"],
            sum(r.sample.sample_id in finals for r in own),
        )
        for step, count in zip(STEPS, counts, strict=True):
            rows[step][kind] = count
            rows[step]["all"] += count
    return {step: {name: row[name] for name in (*TYPES, "all")} for step, row in rows.items()}


def report(
    records: Sequence[Record], finals: Collection[str],
    sampled: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The funnel, why wordings were malformed, and the ROUGE-L of what ships, by type."""
    useless = ("unanswered", "malformed", "not paraphrased", "malformed again")
    reasons = Counter(r.detail for r in records if r.outcome in useless)
    shipped = [r for r in records if r.sample.sample_id in finals]
    return {
        "funnel": funnel(records, finals, sampled),
        "unusable answers": dict(sorted(reasons.items())),
        "rouge_l of finals": {
            name: distribution(
                [r.again.rouge_l for r in shipped if r.again and name in (r.sample.type, "all")]
            )
            for name in (*TYPES, "all")
        },
        "documents of finals": len({r.sample.doc_id for r in shipped}),
    }


def distribution(values: Sequence[float]) -> dict[str, float | int | None]:
    """Number, mean and quantiles (linear between neighbours); null where there is no value."""
    import numpy as np

    found: dict[str, float | int | None] = {"n": len(values)}
    found["mean"] = float(np.mean(values)) if values else None
    for q in QUANTILES:
        found[f"p{q}"] = float(np.percentile(values, q)) if values else None
    return found

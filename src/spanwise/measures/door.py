"""`spanwise score`: three files in, scores and a summary out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spanwise.errors import RunError
from spanwise.measures.evaluate import Evaluator, Scores
from spanwise.measures.files import read_chunks, read_questions
from spanwise.measures.trec import ranked, read_run

MEANING = {
    "questions": "questions",
    "no_evidence": "without evidence: every measure null",
    "absent": "absent from the run: scored 0",
    "no_relevant": "without a relevant chunk in the segmentation: mrr and ndcg@10 are 0",
    "unreachable": "with evidence that no chunk touches: cov_ndcg@10 is 0",
    "above_one": "above 1 in cov_ndcg@10 (overlapping chunks; the ideal is greedy), not clipped",
    "uncounted": "with chunks whose tokens are not given: coverage@ null",
    "strangers": "in the run, not among the questions: left out",
}
"""What each count of Scores says, in words."""


def score_files(questions: Path, chunks: Path, run: Path) -> Scores:
    """Score a TREC run against questions and chunks given as JSON lines.

    raises: InputError (QuestionError, RunError, DecodingError) that names file and line; RunError
            for a run that ranks for none of the questions, though it ranks.
    """
    units = read_chunks(chunks)
    gold = read_questions(questions, units)
    ranking = read_run(run, gold, units)
    if ranking.strangers and not len(ranking.questions):
        raise RunError(
            f"{run}: none of its {ranking.strangers} questions is in {questions}, whose first is "
            f"{gold.question_ids[0].as_py()!r}; write the ids of the questions into the run"
        )
    return Evaluator(gold, units).evaluate(ranking)


def rank_notes(run: Path) -> list[str]:
    """One line if the ranks of a run order chunks otherwise than its scores, else none.

    Distances that were written as scores do so, and would be scored upside down unseen. Ranks that
    are no numbers order nothing.
    """
    names, ranks, scores = ranked(run)
    order = np.lexsort((-scores, ranks, names))
    names, scores = names[order], scores[order]
    apart = np.unique(names[1:][(np.diff(names) == 0) & (np.diff(scores) > 0)])
    if not len(apart):
        return []
    return [
        f"{len(apart)} of {len(np.unique(names))} questions in the run have ranks that contradict "
        "their scores: chunks are ordered by score, the highest first, and ranks are ignored; "
        "negate distances"
    ]


def notes(scores: Scores) -> list[str]:
    """What was scored 0, left out or left undefined, one line each; none if nothing was."""
    return [
        f"{count} {MEANING[name]}"
        for name, count in scores.counts.items() if count and name != "questions"
    ]


def summary(scores: Scores) -> str:
    """A table of means, each with the number of questions it is over, and all counts."""
    lines = [f"{'measure':<20}{'mean':>8}{'n':>8}{'null':>8}"]
    for measure in scores.values:
        mean, n = scores.mean(measure)
        shown = "-" if mean is None else f"{mean:.4f}"
        lines.append(f"{measure:<20}{shown:>8}{n:>8}{scores.counts['questions'] - n:>8}")
    lines.append("")
    lines += [f"{count:>8} {MEANING[name]}" for name, count in scores.counts.items()]
    return "\n".join(lines)

"""`spanwise score`: three files in, scores and a summary out."""

from __future__ import annotations

from pathlib import Path

from spanwise.errors import InputError
from spanwise.measures.evaluate import Evaluator, Scores
from spanwise.measures.files import read_chunks, read_questions, score_lines
from spanwise.measures.trec import read_run
from spanwise.schemas import write_text

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

    raises: InputError (QuestionError, RunError, DecodingError) that names file and line.
    """
    units = read_chunks(chunks)
    gold = read_questions(questions, units)
    return Evaluator(gold, units).evaluate(read_run(run, gold, units))


def write_scores(out: Path, scores: Scores, inputs: tuple[Path, ...] = ()) -> None:
    """Write scores as JSON lines; the file appears whole or not at all.

    inputs: files that must not be written over.
    raises: InputError if the place cannot be written.
    """
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"--out {out} is an input; name another file")
    if out.exists() and not out.is_file():
        raise InputError(f"--out {out} is no regular file; name a file")
    try:
        write_text(out, score_lines(scores))
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror})") from None


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

"""Whether one corpus's artifacts belong together: figures of one run may not stand beside texts or
chunks of another.

A whole `dvc repro` always leaves what belongs together. A single stage (`dvc repro parse@notes`),
an edited `params.yaml` or a run that failed half way does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from spanwise.errors import InputError
from spanwise.params import Params

MEND = "run `dvc repro`"


def same_texts(
    name: str, infer: Mapping[str, Any], parse: Mapping[str, Any], ask: Mapping[str, Any]
) -> None:
    """Hold the documents and questions that the figures are of against those that there are.

    infer, parse, ask: what these stages reported of corpus `name`.
    raises: InputError if they are others.
    """
    was = infer["digests"]
    if parse["study"]["digests"]["documents"] != was["documents"]:
        raise InputError(f"{name}: parse has left other documents since; {MEND}")
    # An older `ask` does not say which documents it asked about.
    about = ask["digests"].get("documents", was["documents"])
    if ask["digests"]["questions"] != was["questions"] or about != was["documents"]:
        raise InputError(f"{name}: ask has left other questions since; {MEND}")


def same_rows(
    name: str, params: Params, *, documents: Collection[str], cited: Iterable[str],
    chunks: Mapping[str, Mapping[str, Mapping[str, Any]]],
    lists: Iterable[Mapping[str, Mapping[str, Sequence[str]]]], named: Iterable[str],
) -> None:
    """Hold what refers to rows of other tables against these.

    documents: ids of all that there are; cited: of those that questions and their evidence name.
    chunks:    segmentation -> chunk_id -> row of CHUNKS.
    lists:     of each cell: condition -> question_id -> chunk ids.
    named:     conditions that contrasts and routing name.
    raises:    InputError for the first reference that leads nowhere.
    """
    held = {row["doc_id"] for its in chunks.values() for row in its.values()}
    for stage, wanted in (("ask", set(cited)), ("chunk", held)):
        if missing := sorted(wanted.difference(documents)):
            raise InputError(
                f"{name}: {stage} ran on other documents: there is no {missing[0]} now; {MEND}"
            )
    if gone := sorted(set(named).difference(params.conditions)):
        raise InputError(
            f"{name}: the figures are of other settings: params.yaml has no condition {gone[0]} "
            f"now; {MEND}"
        )
    for cell in lists:
        for condition, by_question in cell.items():
            if condition not in params.conditions:
                continue  # nobody looks at its list
            segmentation = params.conditions[condition].segmentation
            known = chunks.get(segmentation, {})
            for ranked in by_question.values():
                if unknown := next((chunk for chunk in ranked if chunk not in known), None):
                    raise InputError(
                        f"{name}: chunk has left other chunks since {condition} was retrieved: "
                        f"{unknown} is no {segmentation} chunk; {MEND}"
                    )

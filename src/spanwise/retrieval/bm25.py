"""BM25 over chunk contents: a condition of its own, and what tells a trivial question set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanwise.params import Bm25Settings
from spanwise.retrieval.flat import DIGITS, Ranking, ranked


def bm25(
    texts: Sequence[str], questions: Sequence[str], settings: Bm25Settings, depth: int
) -> list[Ranking]:
    """Rank texts (in shelf order) for each question; texts that share no term with it are left out.

    Lucene's variant, English stop words removed, no stemming.
    """
    import bm25s

    index = bm25s.BM25(method="lucene", k1=settings.k1, b=settings.b)
    tokens = bm25s.tokenize(list(texts), stopwords="en", stemmer=None, show_progress=False)
    if not any(len(ids) for ids in tokens.ids):  # stop words alone
        return [Ranking(np.zeros(0, dtype=np.int64), np.zeros(0)) for _ in questions]
    index.index(tokens, show_progress=False)
    asked = bm25s.tokenize(
        list(questions), stopwords="en", stemmer=None, show_progress=False, return_ids=False
    )
    found = []
    for terms in asked:
        known = [term for term in terms if term in index.vocab_dict]
        if not known:
            found.append(Ranking(np.zeros(0, dtype=np.int64), np.zeros(0)))
            continue
        values = np.round(index.get_scores(known).astype(np.float64), DIGITS)
        hits = np.flatnonzero(values > 0)
        found.append(ranked(hits, values[hits], depth))
    return found

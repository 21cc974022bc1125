"""How much of the evidence a ranking retrieves. Offsets are content alone: no prefix is relevant.

    places      what is ranked: a unit with its span and its cost in tokens
    coverage    marginal gains, DCG, the greedy ideal, cov-nDCG@k, recall@k
    ranked      which chunk is relevant; reciprocal rank and binary nDCG@k over the relevant
    budget      coverage within a budget of tokens
    bundles     sufficiency of one unit, coverage of a bundle by several
    arrays      questions, chunks and rankings of a whole corpus as arrays
    geometry    which chunks overlap which spans, and the pieces they cut spans into
    evaluate    every measure of every question at once
    files, trec JSON lines and TREC runs -> arrays
    tables      the pipeline's tables -> arrays

The first four rooms take one question and read like the formulas. `evaluate` gives the same values
bit for bit, fast: it is what every caller uses.
"""

from spanwise.measures.budget import budget_coverage, fitting
from spanwise.measures.bundles import bundle_coverage, sufficient
from spanwise.measures.coverage import cov_ndcg, dcg, ideal, marginal_gains, recall
from spanwise.measures.places import Unit
from spanwise.measures.ranked import ndcg, reciprocal_rank, relevant

__all__ = [
    "Unit",
    "budget_coverage",
    "bundle_coverage",
    "cov_ndcg",
    "dcg",
    "fitting",
    "ideal",
    "marginal_gains",
    "ndcg",
    "recall",
    "reciprocal_rank",
    "relevant",
    "sufficient",
]

"""What is fixed beforehand: all that a confirmatory result depends on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from spanwise.params import MEASURES, Params
from spanwise.statistics.linearised import FEW
from spanwise.statistics.power import ALPHA, POWER

EXCLUSIONS = (
    "questions without an answer",
    "questions whose evidence stands only in headings",
    "questions without evidence, or with evidence only in tables or figures",
    "rewordings of another question",
    "documents without a usable induced tree, and questions about them",
)


def protocol(params: Params, digests: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """All that a confirmatory result depends on, and by name what is explored beside it.

    digests: {corpus: {"documents": sha256, "questions": sha256}} of the study split.
    """
    arms = {arm for pair in params.contrasts.values() for arm in pair}
    return {
        "contrasts": {name: list(pair) for name, pair in params.contrasts.items()},
        "primary": params.primary.model_dump(),
        "measures": list(MEASURES),
        "exclusions": list(EXCLUSIONS),
        "inference": params.inference.model_dump(),
        "statistics": _statistics(params),
        "exploratory": {"steps": {name: list(pair) for name, pair in params.steps.items()}},
        "conditions": {
            name: its.model_dump() for name, its in params.conditions.items() if name in arms
        },
        "embedder": params.embedders[params.primary.embedder].model_dump(),
        **_reranker(params),
        "tokens": params.tokens.model_dump(),
        "encoders": {
            name: params.embedders[name].model_dump()
            for name in sorted({params.tokens.tokenizer, params.inducers.segmenter.embedder})
            if name in params.embedders
        },
        "chunking": params.chunking.model_dump(),
        **_external(params, arms),
        "inducers": params.inducers.model_dump(),
        "prefixes": params.prefixes.model_dump(exclude={"context"}),
        "retrieval": params.retrieval.model_dump(),
        "corpora": {
            name: {**_corpus(params, name), **found} for name, found in digests.items()
        },
    }


def _external(params: Params, arms: Collection[str]) -> dict[str, Any]:
    """The segmentations of other packages that an arm has, with the versions that cut them."""
    used = {params.conditions[arm].segmentation for arm in arms} & params.external.keys()
    if not used:
        return {}
    return {"external": {name: params.external[name].model_dump() for name in sorted(used)}}


def _reranker(params: Params) -> dict[str, Any]:
    """The primary cell's reranker, where it has one."""
    name = params.primary.reranker
    return {"reranker": params.rerankers[name].model_dump()} if name in params.rerankers else {}


def _statistics(params: Params) -> dict[str, Any]:
    """The rules by which a difference, equivalence and power are judged."""
    size = len(params.contrasts)
    return {
        "significance": ALPHA,
        "family": {"method": "holm", "m": size},
        "interval": {
            "level": 0.95,
            "method": "percentile bootstrap by document",
            "few_documents": FEW,
            "below": "linearised, t(G-1)",
        },
        "equivalence": {
            "level": 0.9, "method": "interval of record within the margin, clustered by document",
            "margin": params.inference.margin,
        },
        "power": {
            "effect": params.inference.margin, "alpha": ALPHA / size, "power": POWER,
        },
    }


def _corpus(params: Params, name: str) -> dict[str, Any]:
    """A corpus's entry, with the settings of the language model where its results depend on one.

    Where its questions came from is told by their digest, which takes that key. The study of units
    moves no result of the ablation.
    """
    corpus = params.corpora[name]
    # What a seed draws for sweeps leaves the study, so it counts where anything is drawn.
    found = corpus.model_dump(
        exclude={"questions", "units"} if corpus.sweep.share else {"questions", "units", "sweep"}
    )
    if corpus.contexts or corpus.inducer in ("hybrid", "llm"):
        found["llm"] = params.llm.model_dump()
    if corpus.contexts:
        found["context"] = params.prefixes.context.model_dump()
    return found

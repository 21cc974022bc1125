"""What the tables themselves say of the set-up, beside the counts that the stages reported.

Each check is a row: what was looked at, what was found, what it should be, and whether it is
flagged. A flag does not change a figure; it says what to bear in mind when reading it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from spanwise.params import Params
from spanwise.reporting.cells import absent_cells, cell_name
from spanwise.reporting.gather import PRIMARY, CorpusRecord, Row
from spanwise.reporting.markup import count, figure, many


@dataclass(frozen=True, slots=True)
class Check:
    """One diagnostic: what, what was found, what was expected, and whether they part."""

    what: str
    found: str
    expected: str
    flagged: bool


def diagnose(record: CorpusRecord, params: Params) -> list[Check]:
    """Every diagnostic of one corpus, in the order of the data's way."""
    return [
        *inducer(record), *cuts(record), *sizes(record, params), *others(record, params),
        *identity(record), *placebos(record),
        *contexts(record, params), *windows(record), *routing(record, params), *ratios(record),
        *lexical(record),
    ]


def uncut(record: CorpusRecord) -> tuple[int, int]:
    """Documents that are one chunk in every segmentation, and documents with any chunk."""
    most: dict[str, int] = {}
    for rows in record.chunks.values():
        for doc_id, found in Counter(row["doc_id"] for row in rows.values()).items():
            most[doc_id] = max(found, most.get(doc_id, 0))
    return sum(found == 1 for found in most.values()), len(most)


def warned(record: CorpusRecord) -> str | None:
    """What to bear in mind before any figure where more than half of the documents are not cut."""
    whole, documents = uncut(record)
    if whole * 2 <= documents:
        return None
    return (
        f"Nothing is cut: {count(whole)} of {many(documents, 'document')} "
        f"{'is' if whole == 1 else 'are'} one chunk in every segmentation, so boundaries, paths "
        "and routing can hardly differ; lower chunking.cap_tokens."
    )


def cuts(record: CorpusRecord) -> list[Check]:
    """How many documents no segmentation cuts; flagged above a tenth."""
    whole, documents = uncut(record)
    return [Check(
        "Documents that nothing cuts",
        f"{count(whole)} of {many(documents, 'document')} "
        f"{'is' if whole == 1 else 'are'} one chunk in every segmentation",
        "few: there boundaries, paths and routing can hardly differ; lower chunking.cap_tokens",
        whole * 10 > documents,
    )] if documents else []


INDUCERS = {
    "segmenter": "segmenter, without a language model",
    "hybrid": "hybrid: the segmenter's boundaries, a language model's titles",
    "llm": "llm: a language model's outlines",
}


def inducer(record: CorpusRecord) -> list[Check]:
    """Who made the induced structure, and how much of it had to be mended or was lost."""
    told = dict(record.reports).get("induce") or {}
    name = str(told.get("inducer"))
    found = [INDUCERS.get(name, name)]
    documents, usable = told.get("documents", 0), told.get("usable", 0)
    if documents:
        found.append(f"{count(usable)} of {many(documents, 'document')} usable, with "
                     f"{figure(told['mean_sections'], 1)} sections in the mean")
    if outlines := told.get("outlines"):
        found.append(f"{count(outlines['usable as given'])} as given, "
                     f"{count(outlines['corrected'])} corrected, "
                     f"{count(outlines['repaired'])} repaired by rules")
    titles = told.get("titles") or {}
    kept = sum(n for what, n in titles.items() if what.startswith("segmenter's title kept"))
    if titles:
        found.append(f"{count(kept)} of {many(titles['sections'], 'title')} stayed the segmenter's")
    if model := (outlines or titles).get("model"):
        found.append(f"asked of {model}")
    return [Check(
        "Induced structure", "; ".join(found), "all documents usable: those that are not leave "
        "every condition", usable < documents,
    )]


def contexts(record: CorpusRecord, params: Params) -> list[Check]:
    """How many chunks got the context that they were to have."""
    told = (dict(record.reports).get("label") or {}).get("contexts")
    if told is None:
        return []
    sizes, without = params.prefixes.context, told["without a context"]
    short, partly = told["shorter than asked for"], told["written from a part of the document"]
    return [Check(
        f"Contexts, written by {told['model']}",
        f"{many(told['chunks'], 'chunk')}: {count(told['of use at once'])} at once, "
        f"{count(told['of use when asked again'])} when asked again, {count(short)} shorter than "
        f"asked for, {count(without)} without; "
        f"{figure(told['mean tokens'], 1)} tokens in the mean; {count(partly)} from a part of the "
        "document",
        f"{sizes.least_tokens} to {sizes.most_tokens} tokens before every chunk",
        without + short > 0,
    )]


def sizes(record: CorpusRecord, params: Params) -> list[Check]:
    """Size matching of fixed and induced chunks, small chunks, and the cap."""
    tokens = {
        name: [row["tokens"] for row in rows.values()] for name, rows in record.chunks.items()
    }
    checks = []
    if tokens.get("fixed") and tokens.get("induced"):
        gap = fmean(tokens["fixed"]) - fmean(tokens["induced"])
        limit = params.chunking.size_tolerance_tokens
        checks.append(Check(
            "Size matching: mean tokens of a chunk",
            ", ".join(f"{name} {figure(fmean(found), 1)}" for name, found in tokens.items()),
            f"fixed and induced within {limit:g} tokens; they are {figure(abs(gap), 1)} apart",
            abs(gap) > limit,
        ))
    if tokens.get("native") and tokens.get("induced"):
        limit = params.chunking.size_tolerance_tokens
        gap = abs(fmean(tokens["native"]) - fmean(tokens["induced"]))
        checks.append(Check(
            "Native against induced: mean tokens of a chunk", f"{figure(gap, 1)} apart",
            f"within {limit:g} tokens, or native and induced conditions differ in size as well as "
            "in who drew the structure (nothing matches them)", gap > limit,
        ))
    floor, cap = params.chunking.floor_tokens, params.chunking.cap_tokens
    for name, found in tokens.items():
        small = sum(size < floor for size in found)
        checks.append(Check(
            f"Small chunks, {name}",
            f"{count(small)} of {count(len(found))} below {floor} tokens",
            "few: one that no neighbour could take in stays small", small * 10 > len(found),
        ))
    large = sum(size > cap for found in tokens.values() for size in found)
    checks.append(Check(
        "Chunks above the cap", count(large), f"none above {cap} tokens", large > 0
    ))
    return checks


def others(record: CorpusRecord, params: Params) -> list[Check]:
    """Segmentations that other packages cut: their size against fixed chunks, and how much of the
    text they hold."""
    told = (dict(record.reports).get("chunk") or {}).get("segmentations", {})
    limit = params.chunking.size_tolerance_tokens
    checks = []
    for name in params.external:
        if not (its := told.get(name)):
            continue
        gap, held = its["gap_to_fixed_tokens"], its["coverage_share"]
        checks += [
            Check(
                f"{name} against fixed: mean tokens of a chunk", f"{figure(gap, 1)} apart",
                f"within {limit:g} tokens, or conditions over them differ in size as well as in "
                "boundaries (its own settings choose it)", not its["size_within_tolerance"],
            ),
            Check(
                f"Text that chunks of {name} hold",
                f"{figure(100 * held, 1)}% of characters, {figure(100 * its['overlap_share'], 1)}% "
                "of those more than once",
                "all of it: evidence outside is never found; what is held twice competes twice",
                held < 1,
            ),
        ]
    return checks


def identity(record: CorpusRecord) -> list[Check]:
    """Share of induced chunk spans that are native ones too: C3 compares what differs."""
    induced = record.chunks.get("induced", {})
    native = _spans(record.chunks.get("native", {}))
    if not induced or not native:
        return []
    same = len(_spans(induced) & native) / len(induced)
    return [Check(
        "Span identity: induced chunks that are native chunks too", f"{figure(100 * same, 1)}%",
        "well below 100%, or the author's and the induced structure are one treatment", same > 0.95,
    )]


def _spans(chunks: Mapping[str, Row]) -> set[tuple[str, int, int]]:
    return {(row["doc_id"], row["start"], row["end"]) for row in chunks.values()}


def placebos(record: CorpusRecord) -> list[Check]:
    """Placebo paths that come from the chunk's own document after all."""
    checks = []
    for where, counts in _objects(dict(record.reports).get("label"), "residual"):
        pairs, residual = counts.get("pairs"), counts["residual"]
        of = f" of {count(pairs)} paths" if pairs is not None else ""
        checks.append(Check(
            f"Placebo residuals{where}", f"{count(residual)}{of} drew one of their own document",
            "none where no document holds more than half of a depth's paths", residual > 0,
        ))
    return checks


def windows(record: CorpusRecord) -> list[Check]:
    """Text that an encoder never saw because it lies beyond its window."""
    checks = []
    for stage, report in record.reports:
        found = [counts for _, counts in _objects(report, "share_of_chunks")]
        if not stage.startswith("embed") or not found:
            continue
        chunks = max(counts["share_of_chunks"] for counts in found)
        evidence = max(counts.get("share_of_evidence_characters", 0.0) for counts in found)
        checks.append(Check(
            f"Encoder window, {stage.removeprefix('embed · ')}",
            f"up to {figure(100 * chunks, 2)}% of chunks, {figure(100 * evidence, 2)}% of evidence "
            f"characters beyond {report.get('window_tokens', 'its')} tokens",
            "0%: what lies beyond cannot be found by its own words", chunks > 0,
        ))
    return checks


def routing(record: CorpusRecord, params: Params) -> list[Check]:
    """Section recall: how often stage 1 kept a section that holds evidence."""
    kept_in = {
        question["question_id"] for question in record.questions
        if question["excluded"] is None and question["base"] is None and question["evidence"]
    }
    checks = []
    for embedder, rows in record.routing.items():
        for condition in dict.fromkeys(row["condition"] for row in rows):
            found = [
                row["section_recall"] for row in rows
                if row["condition"] == condition and row["section_recall"] is not None
                and row["question_id"] in kept_in
            ]
            if found:
                checks.append(Check(
                    f"Section recall, {condition} · {embedder}",
                    f"{figure(fmean(found))} over {many(len(found), 'question')}",
                    f"near 1: where none of {params.retrieval.sections} kept sections holds "
                    "evidence, only the backfill can find it",
                    fmean(found) < 0.9,
                ))
    return checks


def ratios(record: CorpusRecord) -> list[Check]:
    """Scores above 1: the greedy ideal is a stand-in, so they are counted and never clipped."""
    above = [
        value for value in record.scores["cov_ndcg@10"] if value is not None and value > 1 + 1e-9
    ]
    found = f"{count(len(above))} of {count(len(record.scores['cov_ndcg@10']))} scores"
    if above:
        found += f", the highest {figure(max(above))}"
    return [Check(
        "Coverage-nDCG above 1", found, "rare: the greedy ideal is a stand-in, never clipped",
        bool(above),
    )]


def lexical(record: CorpusRecord) -> list[Check]:
    """How often words alone put a relevant chunk first: how lexical the questions are."""
    return [
        Check("BM25 puts gold first", f"{figure(100 * share, 1)}% of questions",
              "low, where questions are to need more than shared words", False)
        for share in gold_first(record)
    ]


def gold_first(record: CorpusRecord) -> list[float]:
    """Share of questions for which each lexical condition ranks a relevant chunk first, in [0, 1].
    """
    return _shares(dict(record.reports).get("infer", {}).get("bm25_gold_first"))


def _shares(found: Any) -> list[float]:
    """Every share in a stage's object, whatever stands around it."""
    if isinstance(found, Mapping):
        return [
            share for key, value in found.items()
            for share in (
                [float(value)] if key == "share" and isinstance(value, int | float)
                else _shares(value)
            )
        ]
    return []


def _objects(report: Any, key: str, where: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """Every object of a stage's counts that holds `key`, with the name it stands under."""
    if not isinstance(report, Mapping):
        return []
    if key in report:
        return [(where, report)]
    return [
        item for name, value in report.items() for item in _objects(value, key, f", {name}")
    ]


def exclusions(record: CorpusRecord, params: Params) -> list[tuple[str, str, int]]:
    """(where, reason, count) of all that left the study, of which nothing is dropped silently."""
    rows = [("questions", reason, n) for reason, n in record.exclusions.items()]
    rows += [
        ("questions", reason, n) for reason, n in sorted(record.excluded().items())
        if record.exclusions.get(reason) != n  # told already
    ]
    for (embedder, reranker, condition, part, measure), row in record.means.items():
        if part == PRIMARY and measure == params.primary.measure and row["undefined"]:
            rows.append((
                f"mean of {condition} · {cell_name((embedder, reranker))}",
                f"{measure} is undefined", row["undefined"],
            ))
    dense = sum(its.retrieval != "bm25" for its in params.conditions.values())
    rows += [
        (f"conditions in cell {cell_name(cell)}", reason, dense - len(record.absent))
        for cell, reason in absent_cells(record).items()
    ]
    for row in record.contrasts:
        if row["measure"] == params.primary.measure and row["excluded"]:
            rows.append((
                f"{row['name']} · {cell_name((row['embedder'], row['reranker']))}",
                "not answered under both conditions, or undefined under one", row["excluded"],
            ))
    return rows

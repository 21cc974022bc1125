"""How to read the page: the measures, the statistics and the words, in short."""

from __future__ import annotations

from importlib import metadata

from spanwise import __version__
from spanwise.params import Params
from spanwise.reporting.markup import esc, tag
from spanwise.reporting.tables import describe
from spanwise.statistics.linearised import FEW

FORMULA = """gain(c_i)  = (1/S) Σ_j |c_i ∩ g_j, less what c_1..c_{i-1} covered| / |g_j|
DCG@k      = Σ_{i≤k} gain(c_i) / log2(i + 1)
cov-nDCG@k = DCG@k / DCG@k of the greedy order of the same chunks"""

MEASURE = (
    "A question has gold spans g_1..g_S; a ranking is c_1, c_2, ... Each span gains only from "
    "chunks of its own document, and only for characters that nothing ranked above has covered. "
    "Each condition is held against the best that its own chunks allow; that ideal is a greedy "
    "stand-in, so a ratio can exceed 1, which is counted and never clipped."
)
OTHERS = (
    "recall@50: the share of spans at least half covered by the top 50 together. MRR and nDCG@10: "
    "a chunk is relevant if it covers half of a span or lies 80% inside one. Coverage within "
    "tokens: the mean share of each span covered by whole chunks in rank order until the first "
    "that does not fit. Bundles at 3 units: whether one of the first three holds a sufficient set "
    "of evidence whole, and whether the three together do."
)
STATISTICS = (
    "A contrast is the mean of paired differences over questions. Documents are resampled {draws} "
    "times; the interval runs from the 2.5 to the 97.5 percentile; p is twice the smaller share "
    "of draws at or beyond zero. Below {few} documents resampling gives intervals that are too "
    "narrow: there interval and p come from the linearised error of the mean and Student's t, with "
    "one degree of freedom less than documents. Holm's correction spans the {contrasts} contrasts "
    "of a corpus, absent ones among them. dz is the mean over the standard deviation of the "
    "differences. Beside what is of record stand BCa intervals, a test that flips the signs of "
    "whole documents (with five documents its p cannot go below .0625, with eight it can pass "
    "Holm's first step), and mixed models with a random intercept for each document: stacked, "
    "the published study's, with two rows a question, and paired, of the differences."
)
VERDICTS = (
    "Difference: Holm's p is below 0.05. Equivalent: the 90% interval lies within ±{margin}, the "
    "smallest effect of interest; each contrast by itself, without Holm's correction; where few "
    "documents show any difference, or a few hold most questions, that interval is known to be too "
    "near zero or too narrow and counts for nothing. Both: a "
    "difference too small to care for. Underpowered: neither, and an effect as large as {margin} "
    "would be missed more than once in five times at the first step of Holm's correction; it says "
    "nothing against an effect. Undetermined: neither, though such an effect would be found. "
    "Power is always that for the margin, never for what was observed: from the spread of the "
    "differences, the questions a document and how much questions of one document move together. "
    "Where the differences do not vary, or all are of one document, the verdict is "
    "undetermined whatever the interval: one without width is no evidence. A p of 0 is judged by "
    "its bound, 2 over the draws, times the contrasts under Holm's correction. Where Student's "
    "interval or the sign flips, under the same correction, would give another verdict, or where p "
    "crosses 0.05 with documents that share evidence as one cluster, the verdict says so."
)
STANDING = (
    "Only a contrast in the cell and the measure that were registered is confirmatory, and only "
    "where all that ran on its corpus equals what the first entry for it fixes, under whatever "
    "name. This page compares settings and digests. It does not see which came first: that the "
    "registration was committed before the results is what spanwise register check proves from "
    "git. All else, means and orders of means among it, is exploratory: it suggests, and does not "
    "show."
)
UNITS = (
    "A study of its own: does what was retrieved hold the evidence whole? A need names exact spans "
    "of one version of a document, its anchors, and bundles of them, each of which would do. "
    "Sufficiency at k: one of the first k units holds every anchor of some bundle. Bundle coverage "
    "at k: the first k together do; a gap of one character is a gap, and a repeated unit fills "
    "none. At k units, longer units return more text, so both are taken at equal amounts as well: "
    "at equal characters and equal tokens, with whole units in rank order until the first that "
    "does not fit, and with the beginning of that one too; and at the same amount need by need, "
    "where each is given, cut short, as many characters as its first k sections have. Where units "
    "are cut short all return the same amount, unless a list is over before. No equal amount "
    "separates boundaries from length: what remains of a difference still mixes where a "
    "segmentation cuts with the size and the number of its units. Each miss at k has one cause, "
    "the first of these that holds: boundary, where no number of its units holds a bundle; cutoff, "
    "where more than k are needed; truncation, where the encoder saw too little of those that "
    "would do; ranking, where they stood too low. Needs without an answer have neither measure and "
    "are counted apart; what they were given counts in the mean of what was returned."
)


REPLICATION = (
    "Over corpora that are no demonstrations, in the primary cell; corpora that share a document "
    "count as one, the largest of them. Replicated: equivalent on all of at least two. Else "
    "corpus-dependent: the differences of two corpora lie more than 1.96 standard errors apart, "
    "Holm's p is below 0.05 on one of them, and not on both in the same direction. Else "
    "replicated: the same sign on all corpora and Holm's p below 0.05 on at least two. "
    "Underpowered: anything else; it is not settled. That a contrast is significant on one corpus "
    "and not on another, or equivalent there, shows no dependence by itself."
)
VERSIONS = (
    "Installed where this page was written. Figures that came from a cache were computed before, "
    "maybe elsewhere; constraints.txt pins the set that was tested together."
)
LIBRARIES = (
    "numpy", "scipy", "statsmodels", "torch", "transformers", "sentence-transformers", "lancedb",
    "bm25s", "pyarrow",
)
"""Libraries that figures depend on and that every installation has; extras are left out, for a page
must not depend on them."""


def versions() -> dict[str, str]:
    """spanwise and LIBRARIES with their versions, without the build's own label (2.13.0+cpu)."""
    return {"spanwise": __version__} | {
        name: metadata.version(name).partition("+")[0] for name in LIBRARIES
    }


def methods(params: Params, *, units: bool = False) -> str:
    """The last section of the page. units: a corpus of the page has the study of units."""
    told = {
        "draws": f"{params.inference.iterations:,}", "margin": f"{params.inference.margin:g}",
        "contrasts": len(params.contrasts), "few": FEW,
    }
    prose = [
        ("The primary measure", MEASURE), ("The other measures", OTHERS),
        ("The statistics", STATISTICS.format(**told)), ("The verdicts", VERDICTS.format(**told)),
        ("Confirmatory and exploratory", STANDING),
        *([("Exact evidence units", UNITS)] if units else []),
    ]
    rooms = [(title, tag("p", esc(text))) for title, text in prose]
    rooms[0] = (rooms[0][0], tag("pre", tag("code", esc(FORMULA)), tabindex="0") + rooms[0][1])
    rooms.append(("The conditions", _terms(
        {name: describe(its) for name, its in params.conditions.items()}
    )))
    rooms.append(("The embedders", _terms({
        name: f"{its.model}, {its.pooling} pooling, at most {its.max_seq_length} tokens, special "
        "ones included"
        for name, its in params.embedders.items()
    })))
    rooms.append(("Replication", tag("p", esc(REPLICATION.format(**told)))))
    rooms.append(("Versions", tag("p", esc(VERSIONS)) + _terms(versions())))
    return tag("section", tag("h2", "How to read this") + tag("div", "".join(
        tag("section", tag("h3", title) + inner) for title, inner in rooms
    ), class_="methods"), id="methods")


def _terms(found: dict[str, str]) -> str:
    return tag("dl", "".join(
        tag("div", tag("dt", esc(name)) + tag("dd", esc(text))) for name, text in found.items()
    ))

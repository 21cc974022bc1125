"""The whole page: verdicts first, then each corpus, then how to read it. One file, no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

from spanwise import __version__
from spanwise.params import Params
from spanwise.reporting import (
    checks_tables,
    contrast_tables,
    exploratory,
    plots,
    replication,
    sections,
    sweep_tables,
    tables,
)
from spanwise.reporting.asked import asked
from spanwise.reporting.cells import absent_cells, cell_name
from spanwise.reporting.diagnose import diagnose, exclusions
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.markup import esc, listed, many, standing, tag
from spanwise.reporting.methods import methods
from spanwise.reporting.questions import elements
from spanwise.reporting.registered import Registered
from spanwise.reporting.summary import short
from spanwise.reporting.units import part as units_part
from spanwise.reporting.verdict import Sentence, apart, contrast_rows, primary_cell, told

TITLE = "Which way of cutting, labelling and routing text retrieves the evidence?"
SCRIPTS = ("page.js", "copy.js", "table.js", "places.js", "view.js", "start.js")
"""One script in the page, in this order."""
STYLES = ("page.css", "questions.css")


def page(
    records: Sequence[CorpusRecord], params: Params, facts: Registered | None = None
) -> str:
    """The page as HTML. Same records, same bytes. facts: what the registration tells beside them.
    """
    script = "".join(map(_asset, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_asset("page.html")).substitute(
        title="spanwise: report",
        # Only this very script runs, and nothing is fetched from anywhere.
        policy=(
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        style="".join(map(_asset, STYLES)),
        script=script,
        body=_head(records, params) + tag(
            "main",
            _verdicts(records, params, facts or Registered())
            + "".join(_corpus(record, params) for record in records)
            + _across(records, params)
            + methods(params, units=any(record.units for record in records)),
        ) + tag("footer", tag(
            "p", f"Written by spanwise {esc(__version__)} from its artifacts: the same artifacts "
            "give this page byte for byte.",
        )),
        data=elements(records, params),
    )


def _asset(name: str) -> str:
    return resources.files("spanwise.reporting").joinpath(name).read_text(encoding="utf-8")


def _head(records: Sequence[CorpusRecord], params: Params) -> str:
    links = [("verdict", "Verdict"), *((f"c-{r.name}", r.name) for r in records),
             ("corpora", "Over corpora"), ("methods", "How to read this")]
    primary = params.primary
    reranker = "no reranker" if primary.reranker == "none" else f"reranker {primary.reranker}"
    lede = (
        f"{many(len(params.conditions), 'condition')}, {many(len(params.embedders), 'embedder')}, "
        f"{many(len(records), 'corpus', 'corpora')}. What was registered is tested in one "
        f"cell: {tables.TITLES[primary.measure]}, {primary.embedder}, {reranker}. Everything else "
        "is exploratory."
    )
    measured = (
        "Coverage-nDCG@10 says how much of a question's exact evidence the first ten chunks bring, "
        "and how early: 1 is the best that the same chunks allow, 0 is no evidence."
    )
    return tag(
        "header",
        tag("p", "spanwise · report", class_="eyebrow") + tag("h1", esc(TITLE))
        + tag("p", esc(lede), class_="lede")
        + (tag("p", measured, class_="soft") if primary.measure == "cov_ndcg@10" else "")
        + tag("nav", tag("ul", "".join(
            tag("li", tag("a", esc(text), href=f"#{place}")) for place, text in links
        )), aria_label="Contents"),
    )


def _notices(record: CorpusRecord, params: Params) -> str:
    cell, wanted = primary_cell(record, params), (params.primary.embedder, params.primary.reranker)
    return "" if cell == wanted else tag("div", tag("p", esc(
        f"The primary cell ({cell_name(wanted)}) did not run on this corpus; what follows is "
        f"of {cell_name(cell)}, and nothing is confirmed."
    )), class_="notice", role="note")


def _verdicts(records: Sequence[CorpusRecord], params: Params, facts: Registered) -> str:
    articles = []
    for record in records:
        cell = primary_cell(record, params)
        rows = contrast_rows(record, params, cell)
        answers = [told(record, row, params) for row in rows]
        items = "".join(
            _answer(said, _pair(row, params), apart(record, row, params))
            for row, said in zip(rows, answers, strict=True)
        )
        articles.append(tag(
            "article",
            tag("div", tag("h3", esc(record.name)) + _whole(record)
                + tag("span", esc(_size(record)), class_="soft"), class_="title")
            + (tag("p", esc(said), class_="quiet") if (said := facts.sentence(record.name)) else "")
            + _notices(record, params) + short(record, params, cell, answers)
            + tag("h4", "Each contrast") + tag("ol", items, class_="answers"),
            class_="verdict", id=f"verdict-{record.name}",
        ))
    return tag("section", tag("h2", "Verdict") + "".join(articles) + facts.part(), id="verdict")


def _pair(row: Row, params: Params) -> str:
    """The two conditions of a contrast in words."""
    return "; ".join(
        f"{arm}: {tables.describe(params.conditions[arm])}" for arm in (row["a"], row["b"])
    )


def _answer(found: Sentence, pair: str, beside: str | None) -> str:
    """pair: its conditions in words; beside: the steps behind it, where they are told."""
    label = f" {standing(found.standing)}" if found.standing else ""
    doubts = [text[:1].upper() + text[1:] for text in (*found.power, *found.doubts)]
    return tag(
        "li",
        tag("div", esc(found.name), class_="key") + tag(
            "div",
            tag("p", esc(found.asks), class_="asks") + tag("p", esc(pair), class_="arms")
            + tag("p", esc(found.answer), class_="answer")
            + tag("p", tag("span", esc(found.badge), class_="badge") + label + " "
                  + esc(found.difference), class_="figures")
            + (tag("p", esc(". ".join(doubts) + "."), class_="figures") if doubts else "")
            + (tag("p", f"{standing('exploratory')} {esc(beside)}", class_="figures")
               if beside else ""),
        ),
        class_=f"is-{found.state}",
    )


def _whole(record: CorpusRecord) -> str:
    """The word for a whole corpus: `exploratory`, or none. Where contrasts were registered, each
    carries its own; nothing else of the corpus is confirmatory."""
    return "" if record.standing == "confirmatory" else standing(record.standing)


def _size(record: CorpusRecord) -> str:
    compared = sum(
        q["excluded"] is None and q["base"] is None and bool(q["evidence"])
        for q in record.questions
    )
    return (
        f"{many(len(record.documents), 'document')}, {many(len(record.questions), 'question')}, "
        f"{compared:,} of them in the primary slice (with an answer, no rewordings)"
    )


def _corpus(record: CorpusRecord, params: Params) -> str:
    name = record.name
    found = [part for part in _parts(record, params) if part.inner]
    contents = tag("nav", tag("ul", "".join(
        tag("li", tag("a", esc(part.title), href=f"#{part.place(name)}")) for part in found
    )), aria_label=f"Contents of {name}", class_="inside")
    sure = tag("a", "how sure this is", href=f"#verdict-{name}")
    about = f"{'A demonstration. ' if record.demonstration else ''}{esc(_size(record))}: {sure}."
    return tag("section", "".join([
        tag("div", tag("h2", esc(name)) + _whole(record), class_="title"),
        tag("p", about, class_="soft"), contents, *(part.html(name) for part in found),
    ]), id=f"c-{name}")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a corpus's section. key: names its place; inner: HTML, "" where there is none;
    headed: `inner` begins with its own heading; open_: all of it is exploratory."""

    key: str
    title: str
    inner: str
    open_: bool = False
    headed: bool = False

    def place(self, corpus: str) -> str:
        """Its id: no name of a corpus holds a dot, so no two parts share one."""
        return f"c-{corpus}.{self.key}"

    def html(self, corpus: str) -> str:
        label = f" {standing('exploratory')}" if self.open_ else ""
        head = "" if self.headed else tag("h3", esc(self.title) + label)
        return tag("div", head + self.inner, id=self.place(corpus), class_="part")


def _parts(record: CorpusRecord, params: Params) -> list[_Part]:
    """The parts of a corpus's section, in order."""
    name = record.name
    joined = contrast_tables.contrasts(record, params, "connected")
    return [
        _Part("contrasts", "The contrasts", "".join([
            _cautions(record, params), plots.forest(record, params),
            _more("The figures of this plot",
                  contrast_tables.contrasts(record, params, "contrast")),
            _more(BESIDE, checks_tables.beside(record, params, "contrast")),
            _more("The contrasts in every measure", contrast_tables.every_measure(record, params)),
            _more("Sensitivity: documents that share a question's evidence, as one",
                  joined and joined + checks_tables.cautioned(record, params, ["connected"])),
        ])),
        _Part("conditions", "The conditions", "".join([
            tables.defined(params, name), plots.conditions(record, params),
            _more("The means in every measure and cell", tables.means(record, params) + tag(
                "p", "Bold is the highest of a cell. A budget is filled with whole chunks in rank "
                "order, rendered prefixes charged.", class_="soft")),
            tag("h4", "Within budgets of tokens"), exploratory.budgets(record, params),
            tag("h4", "By type of question"), tables.slices(record, params),
        ])),
        _Part("steps", "Steps", _steps(record, params), open_=True),
        _Part("types", "The contrasts within types of question", tag(
            "p", "Found by looking, not fixed beforehand, and over fewer questions each: they "
            "suggest what to test next.", class_="soft") + exploratory.types(record, params),
            open_=True),
        _Part("depth", "Depth of the heading path", plots.dose(record, params)
              + contrast_tables.contrasts(record, params, "dose"), open_=True),
        _Part("units", "Exact evidence units", units_part(record, params), headed=True),
        _Part("sweeps", "Sweeps", sweep_tables.part(record), headed=True),
        _Part("origin", "Where the questions come from", asked(record)),
        _Part("exclusions", "Exclusions", tables.left_out(exclusions(record, params), name)
              + _absent(record) + _funnel(record)),
        _Part("diagnostics", "Diagnostics", tables.checks(diagnose(record, params), name)
              + _more("All counts that the stages reported", tag("div", "".join(
                  tag("section", tag("h4", esc(stage)) + tables.tree(report))
                  for stage, report in record.reports), class_="reports"))),
        _Part("questions", "The questions behind the figures", tag(
            "p", "Each row is one question with its score under every condition. Open one to see "
            "its document with the evidence and the edges of chunks, and what each condition "
            "ranked where.", class_="soft") + tag("div", tag("noscript", tag(
                "p", "This table needs JavaScript; without it, <code>spanwise show QUESTION_ID"
                "</code> prints the same.")),
            class_="questions", id=f"questions-{name}", data_corpus=name), open_=True),
    ]


def _steps(record: CorpusRecord, params: Params) -> str:
    steps = contrast_tables.contrasts(record, params, "step")
    return tag(
        "p", "What each treatment adds to the one before it. None of these was fixed "
        "beforehand." if steps else "No steps are named in params.yaml: nothing is said of "
        "what each treatment adds to the one before it.", class_="soft",
    ) + steps + _more(BESIDE, checks_tables.beside(record, params, "step"))


BESIDE = "Beside these intervals: other intervals and tests, power, mixed models"


def _cautions(record: CorpusRecord, params: Params) -> str:
    """What makes intervals less sure than they say, in every cell."""
    found = checks_tables.cautioned(record, params, ["contrast", "step"])
    return tag("div", found, class_="notice", role="note") if found else ""


def _across(records: Sequence[CorpusRecord], params: Params) -> str:
    """What can only be said over corpora."""
    recall = sections.part(records, params)
    return tag("section", tag("h2", "Over corpora") + tag("h3", "Replication")
               + replication.part(records, params)
               + (tag("h3", "What routing keeps") + recall if recall else ""), id="corpora")


def _more(title: str, inner: str) -> str:
    return tag("details", tag("summary", esc(title)) + inner) if inner else ""


def _funnel(record: CorpusRecord) -> str:
    """What the reader kept and left out of the study's part of the corpus."""
    counts = dict(record.reports).get("parse")
    counts = counts.get("study", counts) if isinstance(counts, dict) else {}
    told = {name: n for name, n in counts.items() if not isinstance(n, dict)}
    return tag("h4", "What the reader kept and left out") + tag(
        "div", tables.tree(told), class_="funnel"
    )


def _absent(record: CorpusRecord) -> str:
    by_reason: dict[str, list[str]] = {}
    for condition, reason in record.absent.items():
        by_reason.setdefault(reason, []).append(condition)
    return "".join(
        tag("p", esc(f"{listed(names)} {'is' if len(names) == 1 else 'are'} absent: {reason}."))
        for reason, names in by_reason.items()
    ) + "".join(
        tag("p", esc(f"Cell {cell_name(cell)} is absent: {reason}."))
        for cell, reason in absent_cells(record).items()
    )

"""HTML tables: real ones, with captions and scopes, that scroll sideways on narrow screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanwise.params import MEASURES, Condition, Params
from spanwise.reporting.cells import LEXICAL, Cell, cell_name, cells_of, is_primary
from spanwise.reporting.diagnose import Check
from spanwise.reporting.gather import PRIMARY, CorpusRecord
from spanwise.reporting.markup import (
    NONE,
    count,
    esc,
    figure,
    standing,
    tag,
    words,
)

COLUMN_GROUPS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    ("Ranking", (("cov_ndcg@10", "cov-nDCG@10"), ("recall@50", "recall@50"), ("mrr", "MRR"),
                 ("ndcg@10", "nDCG@10"))),
    ("Coverage within tokens", (("coverage@512", "512"), ("coverage@1024", "1,024"),
                                ("coverage@2048", "2,048"))),
    ("Bundles at 3 units", (("sufficient@3", "sufficient"), ("bundle_coverage@3", "covered"))),
)
TITLES = {measure: title for _, columns in COLUMN_GROUPS for measure, title in columns} | {
    "cov_ndcg@10": "coverage-nDCG@10"
}
"""What a measure is called in running text."""


def table(
    caption: str, head: str, body: str, *, label: str, look: str | None = None
) -> str:
    """A table in a frame that scrolls and takes the keyboard.

    caption, head, body: HTML; label: text, names the scrolling frame.
    """
    made = tag(
        "table", tag("caption", caption) + tag("thead", head) + body, class_=look
    )
    return tag("div", made, class_="scroll", role="region", aria_label=label, tabindex="0")


def heads(titles: Sequence[str], numeric_from: int = 1, over_words: Sequence[str] = ()) -> str:
    """One row of column headings; from `numeric_from` on they stand over figures, but for those of
    `over_words`."""
    return tag("tr", "".join(
        tag("th", esc(title), scope="col",
            class_="n" if i >= numeric_from and title not in over_words else None)
        for i, title in enumerate(titles)
    ))


def number(text: str, look: str = "") -> str:
    """A table cell that holds a figure."""
    return tag("td", esc(text), class_=f"n {look}".strip())


def describe(condition: Condition) -> str:
    """A condition in words, made from its row of params.yaml."""
    text = f"{condition.segmentation} chunks"
    if condition.prefix == "path":
        text += f", heading path to depth {condition.depth}"
    elif condition.prefix == "placebo":
        text += f", another document's path to depth {condition.depth}"
    elif condition.prefix == "context":
        text += ", written context"
    return text + {"flat": "", "routed": ", routed", "bm25": ", BM25"}[condition.retrieval]


def mechanism(condition: Condition) -> str:
    """A condition in as few words as a row's label holds."""
    prefix = {"none": "no prefix", "path": f"path {condition.depth}", "placebo": "placebo",
              "context": "context"}[condition.prefix]
    how = {"flat": "", "routed": ", routed", "bm25": ", words"}[condition.retrieval]
    return f"{condition.segmentation}, {prefix}{how}"


BOUNDARIES = {"fixed": "fixed: equal windows", "induced": "induced: sections a model drew",
              "native": "native: the author's sections"}


def boundaries(params: Params, condition: Condition) -> str:
    """Where a condition's text is cut, in a line."""
    name = condition.segmentation
    if name not in params.external:
        return BOUNDARIES[name]
    its = params.external[name]
    return f"{name}: by {its.callable} of {its.package} {its.version}"


SEARCHES = {"flat": "all chunks at once", "routed": "sections first, then their chunks",
            "bm25": "all chunks, by words alone (BM25)"}


def defined(params: Params, name: str) -> str:
    """What each condition is, in a line: where text is cut, what stands before it, how it is
    searched. name: of the corpus the table stands under."""
    def before(its: Condition) -> str:
        return {"none": "nothing", "path": f"its heading path, depth {its.depth}",
                "placebo": f"another document's heading path, depth {its.depth}",
                "context": "a context written by a language model"}[its.prefix]

    body = "".join(
        tag("tr", tag("th", esc(condition), scope="row") + "".join(
            tag("td", esc(text))
            for text in (boundaries(params, its), before(its), SEARCHES[its.retrieval])
        ))
        for condition, its in params.conditions.items()
    )
    return table(
        "What each condition is", heads(["Condition", "Chunks", "Before the text", "Search"], 9),
        tag("tbody", body), label=f"What each condition is, {name}",
    )


def means(record: CorpusRecord, params: Params) -> str:
    """Means of every measure by condition, one group of rows for each cell."""
    shown = [(group, [c for c in columns if c[0] in MEASURES]) for group, columns in COLUMN_GROUPS]
    head = tag("tr", tag("th", "Condition", scope="col", rowspan="2") + "".join(
        tag("th", esc(group), scope="colgroup", colspan=str(len(columns)), class_="group")
        for group, columns in shown
    ) + tag("th", "Questions", scope="col", rowspan="2", class_="n"))
    measures = [measure for _, columns in shown for measure, _ in columns]
    head += tag("tr", "".join(
        tag("th", esc(title), scope="col", class_="n") for _, columns in shown
        for _, title in columns
    ))
    bodies = []
    for cell in cells_of(record, params):
        rows = [cell_head(cell, params, len(measures) + 2)]
        found = {
            measure: [
                row["mean"] for condition in params.conditions
                if (row := record.mean(cell, condition, measure)) and row["mean"] is not None
            ] for measure in measures
        }
        for condition, its in params.conditions.items():
            if (its.retrieval == "bm25") != (cell == LEXICAL):
                continue
            rows.append(_mean_row(record, cell, condition, its, measures, found, params))
        bodies.append(tag("tbody", "".join(rows)))
    return table(
        f"Means by condition {standing('exploratory')}", head, "".join(bodies),
        label=f"Means by condition, {record.name}", look="means",
    )


def cell_head(cell: Cell, params: Params, columns: int) -> str:
    """The row that opens a cell's group."""
    name = esc(cell_name(cell)) + (" · primary cell" if is_primary(cell, params) else "")
    return tag("tr", tag("th", name, scope="rowgroup", colspan=str(columns)), class_="cell")


def _mean_row(
    record: CorpusRecord, cell: Cell, condition: str, its: Condition, measures: Sequence[str],
    found: Mapping[str, Sequence[float]], params: Params,
) -> str:
    name = tag("th", f"{esc(condition)} <small>{esc(mechanism(its))}</small>", scope="row")
    first = record.mean(cell, condition, params.primary.measure)
    if first is None:
        reason = record.absent.get(condition, "it has no row in this cell")
        span = str(len(measures) + 1)
        return tag("tr", name + tag("td", f"absent: {esc(reason)}", colspan=span, class_="absent"))
    cells = []
    for measure in measures:
        row = record.mean(cell, condition, measure)
        if row is None:
            cells.append(number(NONE))
            continue
        top = len(found[measure]) > 1 and row["mean"] == max(found[measure])
        text = esc(figure(row["mean"]))
        if row["n_questions"] != first["n_questions"]:
            text += f" <small>n {count(row['n_questions'])}</small>"
        cells.append(tag("td", text, class_="n top" if top else "n"))
    asked = count(first["n_questions"])
    if first["undefined"]:
        asked += f" (+{count(first['undefined'])} undefined)"
    return tag("tr", name + "".join(cells) + number(asked))


def slices(record: CorpusRecord, params: Params) -> str:
    """The primary measure by type of question, rewordings beside them."""
    parts = list(dict.fromkeys(key[3] for key in record.means))
    order = [PRIMARY, *sorted(p for p in parts if p.startswith("type:")),
             *sorted(p for p in parts if p != PRIMARY and not p.startswith("type:"))]
    measure = params.primary.measure
    bodies = []
    dense = [n for n, its in params.conditions.items() if its.retrieval != "bm25"]
    lexical = [n for n, its in params.conditions.items() if its.retrieval == "bm25"]
    columns = [
        name for name in [*dense, *lexical] if any(key[2] == name for key in record.means)
    ]
    for cell in cells_of(record, params):
        if cell == LEXICAL:
            continue
        rows = [cell_head(cell, params, len(columns) + 2)]
        for part in order:
            found = {
                name: record.mean(LEXICAL if name in lexical else cell, name, measure, part)
                for name in columns
            }
            asked = [row["n_questions"] for row in found.values() if row is not None]
            if not asked:
                continue
            values = [r["mean"] for n, r in found.items() if r and r["mean"] is not None
                      and n not in lexical]
            rows.append(tag("tr", tag("th", esc(part_title(part)), scope="row")
                            + number(count(max(asked))) + "".join(
                number(figure(row["mean"] if row else None),
                       "top" if row and len(values) > 1 and name not in lexical
                       and row["mean"] == max(values) else "")
                for name, row in found.items()
            )))
        bodies.append(tag("tbody", "".join(rows)))
    return table(
        f"{esc(TITLES[measure])} by type of question {standing('exploratory')}",
        heads(["Questions", "n", *columns]), "".join(bodies),
        label=f"Means by type of question, {record.name}",
    )


def part_title(part: str) -> str:
    """A slice's name for a reader."""
    if part == PRIMARY:
        return "all (primary slice)"
    return part.removeprefix("type:")


def checks(found: Sequence[Check], name: str) -> str:
    """The diagnostics: what is flagged stands open, what is as expected is folded."""
    flagged, sound = ([c for c in found if c.flagged is is_so] for is_so in (True, False))
    made = _checks(flagged, "Look here: what is not as expected", f"Flagged, {name}") if (
        flagged) else tag("p", "Everything is as expected.")
    return made + (tag("details", tag(
        "summary", f"{len(sound)} more, as expected" if flagged else f"All {len(sound)}",
    ) + _checks(sound, "As expected", f"Diagnostics, {name}")) if sound else "")


def _checks(found: Sequence[Check], caption: str, label: str) -> str:
    body = "".join(
        tag("tr", tag("th", esc(check.what), scope="row") + tag("td", esc(check.found))
            + tag("td", esc(check.expected)))
        for check in found
    )
    return table(caption, heads(["Diagnostic", "Found", "Expected"], 9), tag("tbody", body),
                 label=label, look="prose")


def left_out(found: Sequence[tuple[str, str, int]], name: str) -> str:
    """Exclusions with their counts."""
    if not found:
        return tag("p", "Nothing was left out of the comparison.")
    body = "".join(
        tag("tr", tag("th", esc(reason), scope="row") + tag("td", esc(where))
            + number(count(number_)))
        for where, reason, number_ in found
    )
    return table(
        "Left out of the comparison", heads(["Reason", "Where", "Count"], 2), tag("tbody", body),
        label=f"Exclusions, {name}", look="prose",
    )


def tree(value: Any) -> str:
    """A stage's counts, whatever they are: objects as lists of terms, lists as they come."""
    if isinstance(value, Mapping):
        if not value:
            return tag("span", "none", class_="quiet")
        return tag("dl", "".join(
            tag("div", tag("dt", esc(words(str(key)))) + tag("dd", tree(inner)),
                class_="nest" if isinstance(inner, Mapping | list) and inner else None)
            for key, inner in value.items()
        ))
    if isinstance(value, list):
        if not value:
            return tag("span", "none", class_="quiet")
        items = "".join(tag("li", tree(item)) for item in value)
        if len(value) > 8:
            return tag("details", tag("summary", count(len(value))) + tag("ul", items))
        return tag("ul", items)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return NONE
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return esc(f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}")
    return esc(value)

"""Every table that passes between stages, as an Arrow schema, and the two doors they pass through.

`write` and `read` refuse a table whose columns or types differ from the schema, whose key repeats,
or that holds NaN; `write` makes a file appear whole or not at all. Offsets are code points.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spanwise.errors import InputError

_SPAN = pa.struct([("doc_id", pa.string()), ("start", pa.int64()), ("end", pa.int64())])


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's name, columns and key. Rows are unique by `key` and written in its order."""

    name: str
    columns: pa.Schema
    key: tuple[str, ...]


def _schema(name: str, key: Sequence[str], /, **columns: pa.DataType | _Nullable) -> Schema:
    fields = []
    for column, kind in columns.items():
        nullable = isinstance(kind, _Nullable)
        fields.append(pa.field(column, kind.kind if nullable else kind, nullable=nullable))
    return Schema(name, pa.schema(fields), tuple(key))


@dataclass(frozen=True, slots=True)
class _Nullable:
    kind: pa.DataType


_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TITLES, _SPANS, _BUNDLES = pa.list_(_TEXT), pa.list_(_SPAN), pa.list_(pa.list_(_INT))

DOCUMENTS = _schema(
    "documents", ["doc_id"],
    doc_id=_TEXT, source=_TEXT, version=_TEXT, title=_TEXT,
    body=_TEXT, raw=_Nullable(_TEXT), body_sha256=_TEXT, raw_sha256=_Nullable(_TEXT),
    words=_INT, labels=_TITLES,
)
# raw_start and raw_end are null where a document has no raw text (QASPER, MediaWiki).
PARAGRAPHS = _schema(
    "paragraphs", ["doc_id", "index"],
    doc_id=_TEXT, index=_INT, start=_INT, end=_INT,
    raw_start=_Nullable(_INT), raw_end=_Nullable(_INT), kind=_TEXT,
)
# first..last are paragraph indices, inclusive; last = first - 1 is a heading without text of its
# own, and then start = end. Offsets index body.
SECTIONS = _schema(
    "sections", ["doc_id", "index"],
    doc_id=_TEXT, index=_INT, title=_TEXT, level=_INT, first=_INT, last=_INT,
    start=_INT, end=_INT,
)
# evidence and bundles index body; raw_evidence and raw_bundles index raw. `excluded` says why a
# question leaves the ablation; null keeps it.
QUESTIONS = _schema(
    "questions", ["question_id"],
    question_id=_TEXT, doc_id=_TEXT, text=_TEXT, type=_TEXT, base=_Nullable(_TEXT),
    evidence=_SPANS, bundles=_BUNDLES,
    raw_evidence=_Nullable(_SPANS), raw_bundles=_Nullable(_BUNDLES),
    excluded=_Nullable(_TEXT),
)
# path: the document's title, then section titles; node: the top-level section that routing uses.
CHUNKS = _schema(
    "chunks", ["segmentation", "doc_id", "start", "end"],
    segmentation=_TEXT, chunk_id=_TEXT, doc_id=_TEXT, start=_INT, end=_INT, tokens=_INT,
    path=_TITLES, node=_INT,
)
# One row for each labelled chunk: `label` is a (segmentation, prefix, depth) of the conditions.
LABELS = _schema(
    "labels", ["label", "doc_id", "start", "end"],
    label=_TEXT, chunk_id=_TEXT, doc_id=_TEXT, start=_INT, end=_INT,
    prefix=_TEXT, prefix_tokens=_INT, text_sha256=_TEXT,
)


def vectors(dim: int) -> Schema:
    """Unit vectors of one embedder, keyed by the digest of settings and text.

    tokens: of the text, special ones left out; seen: its code points inside the encoder's window.
    """
    return _schema(
        "vectors", ["key"], key=_TEXT, tokens=_INT, seen=_INT, vector=pa.list_(pa.float32(), dim),
    )


RUNS = _schema(
    "runs", ["condition", "question_id", "rank"],
    condition=_TEXT, question_id=_TEXT, rank=_INT, chunk_id=_TEXT, score=_FLOAT,
)
# kept: ids of the sections that stage 1 kept, best first, `doc_id#node`.
ROUTING = _schema(
    "routing", ["condition", "question_id"],
    condition=_TEXT, question_id=_TEXT, kept=_TITLES, section_recall=_Nullable(_FLOAT),
)
# What a reranker said, keyed by the digest of settings, question and text. tokens: of both, special
# ones included; cut: the model read fewer.
PAIRS = _schema("pairs", ["key"], key=_TEXT, tokens=_INT, cut=_BOOL, score=_FLOAT)
SCORES = _schema(
    "scores", ["embedder", "reranker", "condition", "question_id"],
    embedder=_TEXT, reranker=_TEXT, condition=_TEXT, question_id=_TEXT, doc_id=_TEXT, type=_TEXT,
    rewording=_BOOL,
    **{
        "cov_ndcg@10": _Nullable(_FLOAT), "recall@50": _Nullable(_FLOAT), "mrr": _Nullable(_FLOAT),
        "ndcg@10": _Nullable(_FLOAT), "coverage@512": _Nullable(_FLOAT),
        "coverage@1024": _Nullable(_FLOAT), "coverage@2048": _Nullable(_FLOAT),
        "sufficient@3": _Nullable(_FLOAT), "bundle_coverage@3": _Nullable(_FLOAT),
    },
)
# Slices: `primary` (answerable, no rewording), `rewordings`, and `type:...` within primary.
MEANS = _schema(
    "means", ["embedder", "reranker", "condition", "slice", "measure"],
    embedder=_TEXT, reranker=_TEXT, condition=_TEXT, slice=_TEXT, measure=_TEXT,
    n_questions=_INT, undefined=_INT, mean=_Nullable(_FLOAT),
)
# family: contrast, connected (the same with documents that share a question as one cluster), step,
# dose, or type:... (a contrast within questions of one type); standing: confirmatory or
# exploratory; status: estimated, or absent with a reason (then every figure is null). Slice
# `primary` throughout. interval: percentile or linearised, which ci, ci90 and p come from; se: the
# linearised standard error.
CONTRASTS = _schema(
    "contrasts", ["embedder", "reranker", "measure", "family", "name"],
    embedder=_TEXT, reranker=_TEXT, measure=_TEXT, family=_TEXT, name=_TEXT, a=_TEXT, b=_TEXT,
    standing=_TEXT, status=_TEXT, reason=_Nullable(_TEXT),
    n_questions=_INT, n_documents=_INT, excluded=_INT,
    mean_a=_Nullable(_FLOAT), mean_b=_Nullable(_FLOAT), delta=_Nullable(_FLOAT),
    ci_low=_Nullable(_FLOAT), ci_high=_Nullable(_FLOAT), ci90_low=_Nullable(_FLOAT),
    ci90_high=_Nullable(_FLOAT), interval=_Nullable(_TEXT), se=_Nullable(_FLOAT),
    p=_Nullable(_FLOAT), dz=_Nullable(_FLOAT), p_holm=_Nullable(_FLOAT),
)
# Beside the contrasts of the primary measure in every cell and family but the slopes: the intervals
# that are not of record, the sign-flip test, both with Holm's correction over the same family, and
# power at the registered margin. *_needed: for that margin four times in five; equivalence_*: for a
# 90% interval within it; equivalence_unsure: that interval is known to miss in such data. cautions:
# in words.
CHECKS = _schema(
    "checks", ["embedder", "reranker", "measure", "family", "name"],
    embedder=_TEXT, reranker=_TEXT, measure=_TEXT, family=_TEXT, name=_TEXT,
    **{
        figure: _Nullable(_FLOAT)
        for figure in (
            "percentile_low", "percentile_high", "percentile_p", "bca_low", "bca_high",
            "linear_low", "linear_high", "linear_p", "linear_p_holm", "flip_p", "flip_p_holm",
            "icc", "design_effect", "power", "detectable", "equivalence_power",
        )
    },
    documents_needed=_Nullable(_INT), questions_needed=_Nullable(_INT),
    equivalence_documents=_Nullable(_INT), equivalence_questions=_Nullable(_INT),
    equivalence_unsure=_BOOL, cautions=_TITLES,
)
# Mixed models of the same contrasts. model: stacked (score ~ condition + (1|document), the
# published study's) or paired (delta ~ 1 + (1|document)); share: of the variance, between
# documents; apart: of two optimizers, in standard errors; note: on the fit; discordance: with what
# is of record.
MIXED = _schema(
    "mixed", ["embedder", "reranker", "measure", "name", "model"],
    embedder=_TEXT, reranker=_TEXT, measure=_TEXT, name=_TEXT, model=_TEXT,
    estimate=_Nullable(_FLOAT), se=_Nullable(_FLOAT), ci_low=_Nullable(_FLOAT),
    ci_high=_Nullable(_FLOAT), p=_Nullable(_FLOAT), share=_Nullable(_FLOAT),
    converged=_Nullable(_BOOL), optimizer=_Nullable(_TEXT), apart=_Nullable(_FLOAT),
    ols_estimate=_Nullable(_FLOAT), ols_se=_Nullable(_FLOAT), note=_Nullable(_TEXT),
    discordance=_Nullable(_TEXT),
)
# The bootstrap's draws for the measure of the primary cell, in every cell.
REPLICATES = _schema(
    "replicates", ["embedder", "reranker", "measure", "name", "draw"],
    embedder=_TEXT, reranker=_TEXT, measure=_TEXT, name=_TEXT, draw=_INT, delta=_FLOAT,
)


# The study of units. One table for each segmentation: its manifest, which maps a unit to its slice
# of the parent, the one text whose digest stands beside it.
UNITS = _schema(
    "units", ["segmentation", "doc_id", "start"],
    segmentation=_TEXT, passage_id=_TEXT, source=_TEXT, doc_id=_TEXT, version=_TEXT,
    representation=_TEXT, parent_sha256=_TEXT, start=_INT, end=_INT, tokens=_INT,
    text_sha256=_TEXT,
)
# Gold spans as they were given, neither united nor mapped. bundles: the numbers of the bundles that
# ask for the anchor; an anchor of none is kept.
ANCHORS = _schema(
    "anchors", ["question_id", "index"],
    question_id=_TEXT, index=_INT, source=_TEXT, doc_id=_TEXT, version=_TEXT,
    representation=_TEXT, parent_sha256=_TEXT, start=_INT, end=_INT, quote=_TEXT,
    bundles=pa.list_(_INT),
)
# slice: development or reworded. anchored_by: the need whose anchors it shares, itself or its base.
# bundles: lists of anchor indices; none for a need without an answer.
NEEDS = _schema(
    "needs", ["need_id"],
    need_id=_TEXT, doc_id=_TEXT, text=_TEXT, type=_TEXT, slice=_TEXT, anchored_by=_TEXT,
    bundles=_BUNDLES,
)
UNIT_RUNS = _schema(
    "unit runs", ["segmentation", "need_id", "rank"],
    segmentation=_TEXT, need_id=_TEXT, rank=_INT, passage_id=_TEXT, score=_FLOAT,
)
# seen: code points of the unit, from its start, inside the encoder's window.
SEEN = _schema(
    "seen", ["segmentation", "passage_id"], segmentation=_TEXT, passage_id=_TEXT, seen=_INT,
)
# basis: what is held equal: units, characters, tokens (whole units), or the last two with the unit
# that does not fit cut short; matched: as many characters as that need's first `amount` sections
# have, cut short. Causes: of a miss at equal units, else null.
OUTCOMES = _schema(
    "outcomes", ["retriever", "segmentation", "need_id", "basis", "amount"],
    retriever=_TEXT, segmentation=_TEXT, need_id=_TEXT, doc_id=_TEXT, slice=_TEXT, type=_TEXT,
    basis=_TEXT, amount=_INT, sufficient=_Nullable(_FLOAT), covered=_Nullable(_FLOAT),
    units=_INT, characters=_INT, tokens=_INT, ended=_BOOL,
    sufficient_cause=_Nullable(_TEXT), covered_cause=_Nullable(_TEXT),
)
# What each need retrieved, frozen: references to exact slices. met: anchors that the unit holds
# whole by itself; part: those that it holds some of.
TRACES = _schema(
    "traces", ["retriever", "segmentation", "need_id", "rank"],
    retriever=_TEXT, segmentation=_TEXT, need_id=_TEXT, rank=_INT, passage_id=_TEXT,
    source=_TEXT, doc_id=_TEXT, version=_TEXT, representation=_TEXT, parent_sha256=_TEXT,
    start=_INT, end=_INT, score=_FLOAT, met=pa.list_(_INT), part=pa.list_(_INT),
)
# n_answerable: needs with a bundle, which sufficient and covered are means over; characters, tokens
# and ended are over all needs. Causes: misses, null where nothing is held equal in units.
UNIT_MEANS = _schema(
    "unit means", ["retriever", "segmentation", "slice", "basis", "amount"],
    retriever=_TEXT, segmentation=_TEXT, slice=_TEXT, basis=_TEXT, amount=_INT, n_needs=_INT,
    n_answerable=_INT, sufficient=_Nullable(_FLOAT), covered=_Nullable(_FLOAT),
    units=_FLOAT, characters=_FLOAT, tokens=_FLOAT, ended=_INT,
    **{
        f"{measure}_{cause}": _Nullable(_INT)
        for measure in ("sufficient", "covered")
        for cause in ("boundary", "cutoff", "truncation", "ranking")
    },
)
# One segmentation minus another, or one retriever minus another, paired by need. All exploratory.
UNIT_COMPARISONS = _schema(
    "unit comparisons", ["slice", "basis", "amount", "measure", "name"],
    slice=_TEXT, basis=_TEXT, amount=_INT, measure=_TEXT, name=_TEXT, family=_TEXT, a=_TEXT,
    b=_TEXT, n_questions=_INT, n_documents=_INT, excluded=_INT, reason=_Nullable(_TEXT),
    mean_a=_Nullable(_FLOAT), mean_b=_Nullable(_FLOAT), delta=_Nullable(_FLOAT),
    ci_low=_Nullable(_FLOAT), ci_high=_Nullable(_FLOAT), p=_Nullable(_FLOAT),
    dz=_Nullable(_FLOAT), p_holm=_Nullable(_FLOAT),
)
# Trials of a sweep, all exploratory. number: the place in which it was drawn. state: complete, or
# failed with a reason (then every figure is null). Sizes are null where the segmentation has none.
SWEEP_TRIALS = _schema(
    "sweep trials", ["number"],
    number=_INT, state=_TEXT, reason=_Nullable(_TEXT), segmentation=_TEXT,
    window_tokens=_Nullable(_INT), overlap_tokens=_Nullable(_INT), cap_tokens=_Nullable(_INT),
    floor_tokens=_Nullable(_INT), depth=_INT, retrieval=_TEXT, sections=_Nullable(_INT),
    chunks=_Nullable(_INT), mean_tokens=_Nullable(_FLOAT),
    **{
        "cov_ndcg@10": _Nullable(_FLOAT), "recall@50": _Nullable(_FLOAT), "mrr": _Nullable(_FLOAT),
        "ndcg@10": _Nullable(_FLOAT), "coverage@512": _Nullable(_FLOAT),
        "coverage@1024": _Nullable(_FLOAT), "coverage@2048": _Nullable(_FLOAT),
        "sufficient@3": _Nullable(_FLOAT), "bundle_coverage@3": _Nullable(_FLOAT),
    },
)
# part: the trials that have these parameters: fixed, structural or routed. importance: a share of
# the part's variance, null with a reason.
SWEEP_IMPORTANCE = _schema(
    "sweep importance", ["part", "parameter"],
    part=_TEXT, parameter=_TEXT, trials=_INT, importance=_Nullable(_FLOAT),
    reason=_Nullable(_TEXT),
)


def table(schema: Schema, rows: Iterable[Mapping[str, Any]] | Mapping[str, Any]) -> pa.Table:
    """A table of `schema`, sorted by its key, from rows or from a mapping of columns.

    raises: InputError if a column is missing or unknown, a value has another type, is NaN or is
            null where the schema has none, or a key repeats.
    """
    if isinstance(rows, Mapping):
        unknown = set(rows) ^ set(schema.columns.names)
        if unknown:
            raise InputError(f"{schema.name}: columns {sorted(unknown)} are missing or unknown")
        made = pa.table({n: rows[n] for n in schema.columns.names}, schema=schema.columns)
    else:
        listed = list(rows)
        for row in listed[:1]:
            if set(row) != set(schema.columns.names):
                raise InputError(
                    f"{schema.name}: columns {sorted(set(row) ^ set(schema.columns.names))} "
                    "are missing or unknown"
                )
        made = pa.Table.from_pylist(listed, schema=schema.columns)
    made = made.sort_by([(name, "ascending") for name in schema.key]).combine_chunks()
    check(schema, made, schema.name)
    return made


def check(schema: Schema, found: pa.Table, where: str) -> None:
    """Hold a table against its schema.

    raises: InputError that names the table, the column and what is wrong.
    """
    if not found.schema.equals(schema.columns, check_metadata=False):
        raise InputError(
            f"{where}: not a {schema.name} table; expected\n{schema.columns}\nfound\n"
            f"{found.schema}\ndelete it and run `dvc repro`"
        )
    for field in schema.columns:
        column = found[field.name]
        if not field.nullable and column.null_count:
            raise InputError(f"{where}: column {field.name} of {schema.name} holds nulls")
        if pa.types.is_floating(field.type) and pc.any(pc.is_nan(column)).as_py():
            raise InputError(f"{where}: column {field.name} of {schema.name} holds NaN")
    keys = found.select(list(schema.key))
    distinct = keys.group_by(list(schema.key)).aggregate([]).num_rows
    if distinct != found.num_rows:
        counts = keys.append_column("_n", pa.array([1] * found.num_rows)).group_by(
            list(schema.key)
        ).aggregate([("_n", "sum")])
        repeated = counts.filter(pc.greater(counts["_n_sum"], 1)).slice(0, 1).to_pylist()[0]
        repeated.pop("_n_sum")
        raise InputError(f"{where}: {schema.name} has a repeated key {repeated}")


def write(path: Path, schema: Schema, found: pa.Table) -> None:
    """Write a table after holding it against its schema; the file appears whole or not at all."""
    check(schema, found, str(path))
    with whole(path) as scratch:
        # No pandas metadata, no statistics of the writer's moment: same rows, same bytes.
        pq.write_table(found.replace_schema_metadata(None), scratch, compression="zstd")


def read(path: Path, schema: Schema) -> pa.Table:
    """Read a table and hold it against its schema.

    raises: InputError if the file is missing or is not such a table.
    """
    if not path.exists():
        raise InputError(
            f"{path}: no such table; run `dvc repro` (or `dvc pull --allow-missing`; `make pull` "
            "for the bundled corpus)"
        )
    found = pq.read_table(path, partitioning=None)
    check(schema, found, str(path))
    return found


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text so that the file appears whole or not at all."""
    with whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def write_out(out: Path, text: str, inputs: Iterable[Path], option: str = "--out") -> None:
    """Write what a person asked for at a place of their choice, whole or not at all.

    inputs: files and folders that must not be written over.
    option: what the place was given as.
    raises: InputError if the place is `-`, is an input, is no regular file or cannot be written.
    """
    if str(out) == "-":
        raise InputError(f"{option} -: expected a file, not standard output")
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"{option} {out} is an input; name another file")
    if out.exists() and not out.is_file():
        raise InputError(f"{option} {out} is no regular file; name a file")
    try:
        write_text(out, text)
    except OSError as error:
        raise InputError(
            f"{option} {out}: cannot be written ({error.strerror}); name another place"
        ) from None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A scratch file beside `path` that takes its place when the block ends well, else vanishes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        scratch.chmod(0o644)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)

"""One MLflow run as a value: what it holds, how MLflow may name that, and its digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanwise import schemas
from spanwise.errors import InputError

TAG_CHARACTERS = 8000
"""How long a tag of a run may be in MLflow; it cuts longer ones in silence."""

Artifact = str | tuple[schemas.Schema, pa.Table]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that one MLflow run holds.

    kind:      cell, condition or contrast; in the study of units retriever, segmentation or
               comparison; in a sweep trial.
    cell:      `<corpus>/<embedder>/<reranker>`, there `<corpus>/<retriever>`; a run of another kind
               lies below the one run of kind cell or retriever.
    artifacts: file name -> text, or a table with its schema.
    """

    kind: str
    cell: str
    name: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    artifacts: Mapping[str, Artifact]

    @property
    def top(self) -> bool:
        """Whether it lies below no other run."""
        return self.kind in ("cell", "retriever", "trial")

    def content(self) -> str:
        """SHA-256 of all of it, tables by their rows: the same results have the same digest."""
        artifacts = {
            name: held if isinstance(held, str) else fingerprint(held[1])
            for name, held in self.artifacts.items()
        }
        return digest_of([
            self.kind, self.cell, self.name, dict(self.params), dict(self.metrics), dict(self.tags),
            artifacts,
        ])


def metric_name(measure: str, part: str = "") -> str:
    """A measure, or one figure or slice of it, as MLflow may name it: `@` is not allowed there.

    >>> metric_name("cov_ndcg@10"), metric_name("cov_ndcg@10", "delta")
    ('cov_ndcg_at_10', 'delta/cov_ndcg_at_10')
    >>> metric_name("mrr", "type:multi hop/2")
    'type/multi hop_x2f_2/mrr'
    """
    name = escape(measure.replace("@", "_at_"))
    return "/".join([*(escape(p) for p in part.split(":") if p), name])


def figures(schema: schemas.Schema) -> tuple[str, ...]:
    """A table's columns that become metrics: the numbers outside its key."""
    return tuple(
        field.name for field in schema.columns if field.name not in schema.key
        and (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
    )


def words(schema: schemas.Schema) -> tuple[str, ...]:
    """A table's columns that become tags: text, texts, and yes or no, outside its key."""
    texts = pa.list_(pa.string())
    return tuple(
        field.name for field in schema.columns if field.name not in schema.key
        and (pa.types.is_string(field.type) or pa.types.is_boolean(field.type)
             or field.type == texts)
    )


def readable(table: pa.Table) -> str:
    """A small table as JSON that MLflow's page shows as one: names of columns, then rows."""
    columns = [table[name].to_pylist() for name in table.column_names]
    shown = {"columns": table.column_names, "data": list(zip(*columns, strict=True))}
    return json.dumps(shown, ensure_ascii=False, allow_nan=False) + "\n"


def joined(
    parts: Sequence[str], most: int = TAG_CHARACTERS, between: str = "\n"
) -> str:
    """Texts one below the other, as many as fit a tag whole; what does not is counted.

    >>> joined(["one", "two", "three"], 20), joined(["one", "two", "three"], 14)
    ('one\\ntwo\\nthree', 'one\\nand 2 more')
    """
    for kept in range(len(parts), -1, -1):
        rest = [f"and {len(parts) - kept} more"] if kept < len(parts) else []
        text = between.join([*parts[:kept], *rest])
        if len(text) <= most:
            break
    return text


def fingerprint(table: pa.Table) -> str:
    """SHA-256 of a table's names, types and rows, whatever wrote or compressed its file."""
    digest = hashlib.sha256()
    for field in table.schema:
        column = table[field.name].combine_chunks()
        digest.update(f"{field.name}\0{field.type}\0{len(column)}\0".encode())
        if pa.types.is_list(field.type):
            digest.update(_canonical(column.to_pylist()))
            continue
        if pa.types.is_string(field.type):
            encoded = column.dictionary_encode()  # in order of first appearance
            digest.update(_canonical(encoded.dictionary.to_pylist()))
            numbers = encoded.indices.fill_null(-1)
        else:
            digest.update(column.is_null().cast(pa.int8()).to_numpy(zero_copy_only=False).tobytes())
            boolean = pa.types.is_boolean(field.type)
            numbers = (column.cast(pa.int8()) if boolean else column).fill_null(0)
        digest.update(numbers.to_numpy(zero_copy_only=False).tobytes())
    return digest.hexdigest()


def flatten(settings: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Settings as MLflow keeps them: dotted names and text.

    >>> flatten({"chunking": {"cap_tokens": 350}, "reranker": "none"})
    {'chunking.cap_tokens': '350', 'reranker': 'none'}
    """
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{above}{name}.")
        else:
            flat[escape(f"{above}{name}", dots=True)] = as_text(value)
    return flat


def as_text(value: Any) -> str:
    """A setting as MLflow keeps it: text stays, all else is JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def escape(name: str, *, dots: bool = False) -> str:
    """Characters that MLflow or a file system refuses, as `_x<hexadecimal>_`."""
    forbidden: Callable[[re.Match[str]], str] = lambda found: f"_x{ord(found[0]):x}_"  # noqa: E731
    return re.sub(r"[^\w\- .]" if dots else r"[^\w\- ]", forbidden, name) or "_"


def unique(cell: str, pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(
                f"{cell}: two figures would both be metric {name!r}; rename a question type"
            )
        found[name] = float(value)
    return found


def where(table: pa.Table, **wanted: str | list[str]) -> pa.Table:
    """The rows whose columns equal (or are among) what is wanted, in the table's order."""
    for column, value in wanted.items():
        values = pa.array([value] if isinstance(value, str) else value, pa.string())
        table = table.filter(pc.is_in(table[column], value_set=values))
    return table


def distinct(table: pa.Table, *columns: str) -> list[tuple[str, ...]]:
    """What stands in some columns of text together, each once, sorted."""
    rows = table.select(list(columns)).group_by(list(columns)).aggregate([]).to_pylist()
    return sorted(tuple(row[c] for c in columns) for row in rows)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


def digest_of(value: Any) -> str:
    """SHA-256 of what JSON can say, whatever the order of its keys."""
    return hashlib.sha256(_canonical(value)).hexdigest()

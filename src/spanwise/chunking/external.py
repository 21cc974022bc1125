"""Segmentations that other packages cut, as entries of `external` in params.yaml.

Their chunks are spans like all others: held against the text, never taken on trust. They may
overlap and leave gaps, which is counted.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import cache
from itertools import accumulate, pairwise
from numbers import Integral
from pathlib import PurePosixPath
from typing import Any

from spanwise.chunking.chunks import Chunk
from spanwise.chunking.recovery import recover, shown
from spanwise.documents.model import Document
from spanwise.errors import ChunkError, ParamsError, Unavailable
from spanwise.params import ChunkingSettings, ExternalSettings
from spanwise.spans import Span, merge
from spanwise.structure.model import Tree
from spanwise.text.tokens import Tokenizer

METHODS = {
    "spans": ("chunk", "create_documents", "__call__"),
    "strings": ("split_text", "chunk", "__call__"),
}
"""What an object is asked by unless `method` names one: chonkie's, then LangChain's."""

PINNED = frozenset({"chonkie", "langchain_text_splitters"})
"""Packages of the extra `splitters`, whose versions constraints.txt has."""

EDGES = (("start", "end"), ("start_index", "end_index"), ("start_char_idx", "end_char_idx"))
"""Names of a chunk's offsets: anybody's, chonkie's, LlamaIndex's."""

Cutter = Callable[[Document], list[Span]]


def chunk_external(
    external: Mapping[str, ExternalSettings], documents: Sequence[Document],
    trees: Mapping[str, Mapping[str, Tree]], tokenizer: Tokenizer, settings: ChunkingSettings,
    fixed_tokens: float,
) -> tuple[list[Chunk], dict[str, dict[str, Any]]]:
    """Every external segmentation of every document that has an induced tree.

    trees:        {"native": {doc_id: tree}, "induced": {doc_id: tree}}.
    fixed_tokens: mean tokens of the fixed chunks, which sizes are held against.
    returns:      chunks; for each segmentation its counts, its mean tokens, the shares of the text
                  that chunks cover and that several do, and how far its size is from the fixed one.
    raises:       Unavailable for a package that is not installed, ParamsError for what its entry
                  asks of it in vain, ChunkError for a document that it does not cut into spans.
    """
    chunks: list[Chunk] = []
    reports: dict[str, dict[str, Any]] = {}
    mine = [document for document in documents if document.doc_id in trees["induced"]]
    for name, its in external.items():
        cut = cutter(name, its)
        made: list[Chunk] = []
        counts: Counter[str] = Counter(blank=0, repeated=0)
        covered = shared = total = 0
        for document in mine:
            spans = _of_use(cut(document), document, name, counts)
            found = _chunks(document, trees[its.tree][document.doc_id], name, spans, tokenizer)
            made += found
            signs = _signs(document.body)
            inside, twice = _coverage(spans, signs)
            covered, shared, total = covered + inside, shared + twice, total + signs[-1]
        mean = sum(chunk.tokens for chunk in made) / max(1, len(made))
        gap = abs(mean - fixed_tokens)
        reports[name] = {
            "chunks": len(made), "mean_tokens": mean,
            "max_tokens": max((chunk.tokens for chunk in made), default=0),
            "above_cap": sum(chunk.tokens > settings.cap_tokens for chunk in made),
            "coverage_share": covered / max(1, total), "overlap_share": shared / max(1, covered),
            "gap_to_fixed_tokens": gap,
            "size_within_tolerance": gap <= settings.size_tolerance_tokens, **counts,
        }
        chunks += made
    return chunks, reports


def cutter(name: str, its: ExternalSettings) -> Cutter:
    """A document's body -> its chunks' spans, as the package orders them.

    raises: Unavailable if the package is not installed; ParamsError if it is another version, lacks
            what is called, or does not take `args`.
    """
    where = f"external.{name}"
    split = _splitter(where, its)

    def cut(document: Document) -> list[Span]:
        here, text = f"{where}: {document.doc_id}", document.body
        if not text:
            return []
        try:
            given = split(text)
            items = None if isinstance(given, str | bytes | Mapping) else list(given)
        except Exception as error:
            raise ChunkError(
                f"{here}: {its.callable} failed: {type(error).__name__}: {error}; mend `args` or "
                "`method`, or leave the document out"
            ) from error
        if items is None:
            raise ChunkError(
                f"{here}: {its.callable} gave {type(given).__name__}, expected a list of chunks"
            )
        if its.gives == "strings":
            strings = [item if isinstance(item, str) else _text(item) for item in items]
            return recover(text, strings, here, its.whitespace, its.overlap)
        return [
            _span(item, text, f"{here}, chunk {number} of {len(items)}")
            for number, item in enumerate(items, 1)
        ]

    return cut


def _splitter(where: str, its: ExternalSettings) -> Callable[[str], Any]:
    """A function from a text to whatever chunks the package has."""
    try:
        module = importlib.import_module(its.package)
    except ImportError as error:
        raise Unavailable(
            f"{where}: {its.package} cannot be imported here ({type(error).__name__}: {error}); "
            f"install it, `{how_to_install(its)}`, or take the entry and its conditions out of "
            "params.yaml"
        ) from None
    _held(where, its, module)
    found: Any = module
    for part in its.callable.split("."):
        if not hasattr(found, part):
            near = get_close_matches(part, dir(found), n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ParamsError(f"{where}.callable: {its.package} has no {its.callable!r}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise ParamsError(f"{where}.callable: {its.callable!r} cannot be called; name a class or a "
                          "function")
    if not isinstance(found, type) and its.method is None and "." not in its.callable:
        return lambda text: found(text, **deepcopy(its.args))
    try:
        made = found(**deepcopy(its.args))
    except Exception as error:
        raise ParamsError(
            f"{where}.args: {its.callable} does not take them: {type(error).__name__}: {error}"
        ) from error
    known = METHODS[its.gives] if its.method is None else (its.method,)
    method = next((m for m in known if callable(getattr(made, m, None))), None)
    if method is None:
        raise ParamsError(
            f"{where}: {its.callable} has no method {' nor '.join(map(repr, known))}; name the one "
            "that splits a text as `method`"
        )
    split: Callable[[Any], Any] = getattr(made, method)
    # LangChain's takes a list of texts and has offsets in the metadata of what it makes.
    return (lambda text: split([text])) if method == "create_documents" else split


def _held(where: str, its: ExternalSettings, module: Any) -> None:
    """Hold the installed version against the entry's: chunks are by one version alone."""
    here = installed(its.package) or getattr(module, "__version__", None)
    if here is None:
        raise ParamsError(
            f"{where}: {its.package} has no version to hold `version` against; install it as a "
            "package, or set __version__ in it"
        )
    if here != its.version:
        raise ParamsError(
            f"{where}.version: {its.version!r}, but {its.package} {here} is installed; say "
            f"`version: \"{here}\"`, or install the other one, `{how_to_install(its)}`"
        )


@cache  # all of what is installed is read for a module that is named otherwise
def installed(package: str) -> str | None:
    """The version of the distribution that a module comes from, None if it comes from none."""
    top, dot, _ = package.partition(".")
    if dot:  # several distributions may share the top, as LlamaIndex's do
        inside = PurePosixPath(*package.split("."))
        for name in sorted(set(importlib.metadata.packages_distributions().get(top, ()))):
            files = importlib.metadata.files(name) or ()
            if any(inside in f.parents or f == inside.with_suffix(".py") for f in files):
                return importlib.metadata.version(name)
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(top)
        return importlib.metadata.version(names[0]) if names else None


def how_to_install(its: ExternalSettings) -> str:
    """The command that brings an entry's package."""
    top = its.package.partition(".")[0]
    if top in PINNED:
        return "pip install -c constraints.txt -e '.[splitters]'"
    return f"pip install {top.replace('_', '-')}=={its.version}"


def _text(item: Any) -> Any:
    """The text that a chunk carries along, None if it carries none."""
    if isinstance(item, Mapping):
        return item.get("text")
    return getattr(item, "text", getattr(item, "page_content", None))


def _edges(item: Any, where: str) -> tuple[Any, Any]:
    """A chunk's offsets as they are given."""
    if isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
        return item[0], item[1]
    metadata = getattr(item, "metadata", None)
    if isinstance(text := getattr(item, "page_content", None), str):
        start = metadata.get("start_index") if isinstance(metadata, Mapping) else None
        if start is None:
            raise ChunkError(
                f"{where}: a document without start_index; give add_start_index: true in `args`"
            )
        if start == -1:
            raise ChunkError(
                f"{where} ({shown(text)}): start_index is -1, the splitter did not find its own "
                "chunk; say `gives: strings`, which finds it or says why not"
            )
        return start, start + len(text) if isinstance(start, Integral) else start
    for names in EDGES:
        if isinstance(item, Mapping) and all(name in item for name in names):
            return item[names[0]], item[names[1]]
        if all(hasattr(item, name) for name in names):
            return getattr(item, names[0]), getattr(item, names[1])
    kind = shown(item) if isinstance(item, str | int | float | None) else type(item).__name__
    raise ChunkError(
        f"{where}: {kind} has no offsets; expected (start, end), or start_index and end_index, or "
        "`gives: strings`"
    )


def _span(item: Any, text: str, where: str) -> Span:
    """A chunk's span, held against the text."""
    start, end = _edges(item, where)
    if start is None or end is None:
        raise ChunkError(
            f"{where}: offsets {start} and {end}, the splitter did not find its own chunk; say "
            "`gives: strings`, which finds it or says why not"
        )
    if not all(isinstance(e, Integral) and not isinstance(e, bool) for e in (start, end)):
        raise ChunkError(
            f"{where}: offsets {shown(start)} and {shown(end)}; expected whole numbers of code "
            "points"
        )
    if not 0 <= start < end <= len(text):
        raise ChunkError(
            f"{where}: span [{start}, {end}), but the text has {len(text)} code points; expected "
            f"0 <= start < end <= {len(text)}. Offsets count code points, neither bytes nor tokens"
        )
    span, its = Span(int(start), int(end)), _text(item)
    if isinstance(its, str) and its != text[span.start : span.end]:
        raise ChunkError(
            f"{where}: its text is {shown(its)}, but [{start}, {end}) of the document reads "
            f"{shown(text[span.start : span.end])}; the offsets are wrong, or the text was "
            "changed: say `gives: strings`"
        )
    return span


def _of_use(
    spans: Sequence[Span], document: Document, name: str, counts: Counter[str]
) -> list[Span]:
    """Spans in order, each once, without those that hold no text: both are counted."""
    distinct = sorted(set(spans))
    found = [span for span in distinct if document.body[span.start : span.end].strip()]
    counts["repeated"] += len(spans) - len(distinct)
    counts["blank"] += len(distinct) - len(found)
    if not found and document.body.strip():
        raise ChunkError(
            f"external.{name}: {document.doc_id}: no chunk holds any of its text, so none of its "
            "evidence could be found; mend `args`"
        )
    return found


def _chunks(
    document: Document, tree: Tree, name: str, spans: Sequence[Span], tokenizer: Tokenizer
) -> list[Chunk]:
    """Chunks with the path and the node of the section that holds most of their code points."""
    own = [index for index, section in enumerate(tree.sections) if section.last >= section.first]
    # As structural chunks do: white space between sections belongs to the one before it.
    starts = [0, *(tree.sections[index].start for index in own[1:])]
    ends = [*starts[1:], len(document.body)]
    paths, tops = tree.paths(), tree.tops()
    made = []
    for span in spans:
        first, last = (bisect_right(starts, edge) - 1 for edge in (span.start, span.end - 1))
        place = max(
            range(first, last + 1),
            key=lambda i: (min(ends[i], span.end) - max(starts[i], span.start), -i),
        )
        made.append(Chunk(
            name, document.doc_id, span.start, span.end,
            tokenizer.count(document.body[span.start : span.end]),
            (document.title, *paths[own[place]]), tops[own[place]],
        ))
    return made


def _signs(text: str) -> list[int]:
    """For each place, the code points before it that are no white space. Shape (n + 1,)."""
    return list(accumulate((not sign.isspace() for sign in text), initial=0))


def _coverage(spans: Sequence[Span], signs: Sequence[int]) -> tuple[int, int]:
    """Code points, no white space, in one chunk at least, and in two at least.

    spans: sorted.
    """
    def held(found: Sequence[Span]) -> int:
        return sum(signs[span.end] - signs[span.start] for span in found)

    reach = list(accumulate((span.end for span in spans), max))
    twice = [
        Span(after.start, min(after.end, end))
        for (_, after), end in zip(pairwise(spans), reach, strict=False) if after.start < end
    ]
    return held(merge(spans)), held(merge(twice))

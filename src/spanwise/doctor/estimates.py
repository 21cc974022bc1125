"""What is left to compute for a corpus, and what it takes on this machine: within a factor of two.

Encoders are reckoned from their layers and widths and from the products that one core makes in a
second just now. A language model here takes so long for each request as it took on two cores;
a server's pace is its own, so only its requests are counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spanwise import layout, models, schemas
from spanwise.doctor import weights
from spanwise.doctor.corpora import Seen
from spanwise.doctor.machine import Machine
from spanwise.doctor.pipeline import Pipeline
from spanwise.doctor.work import OTHERS, Estimate, Work, held_against
from spanwise.documents.model import sha256
from spanwise.embedding import key, query_text
from spanwise.errors import InputError, SpanwiseError
from spanwise.params import SEGMENTATIONS, EmbedderSettings, Params

CONTEXT_S, TREE_S, QUESTION_S = 15.0, 120.0, 20.0
"""Seconds of a context, of a document's titles or outline, and of a written question, on two cores
with a model of 1.5 billion parameters."""

START, ENDING, LOAD = 5.0, 30.0, 20.0
"""How often Python could start with the tables alone (`Machine.start`, 0.5 s on an idle server) in
the time of one stage with its packages and DVC's part; of the stages that all corpora share
(`report`, `track`); and of one process that imports an encoder's packages and loads it. Measured
on two cores with five documents."""

EACH_S = 0.1
"""Seconds of each question in all stages that run no model: bootstrap, tests, tables."""

_NO_PIPELINE = Pipeline()
_PROCESS = 600_000_000   # bytes of a process with torch, without weights
_TABLES = 350_000_000    # of a stage that runs no model
_NATIVE_TOKENS = 150     # of a native chunk, where sections are short and merged
PATH, CONTEXT = 20, 70  # tokens of a prefix
SAMPLE = 500_000         # code points that are counted token by token


def estimate(
    params: Params, seen: Seen, machine: Machine, rate: Callable[[int], float],
    pipeline: Pipeline = _NO_PIPELINE,
) -> Estimate:
    """What is left to do for a corpus.

    rate: an encoder's width -> its operations a second on one core.
    """
    counter = _counter(params, seen)
    tokens = round(counter * sum(len(d.body) for d in seen.documents))
    labelled = _labelled(seen)
    # What an entry of `external` came to is not counted before it has cut.
    counted = _counted_chunks(params, seen, pipeline)
    chunks = {**_chunks(params, seen, tokens), **counted}
    made = Estimate(seen.name, labelled is not None or chunks.keys() <= counted.keys(), tokens,
                    chunks, until=_until(seen, "chunk"))
    changed, stage = not seen.unchanged, pipeline.find

    def add(work: Work, name: str, *sources: str, anew: bool = False) -> None:
        """sources: earlier stages that tell how much is left."""
        until = next(filter(None, (_until(seen, source) for source in sources)), "")
        made.work.append(held_against(work, stage(name), changed, until, anew))

    add(_induce(params, seen, tokens, machine, rate), f"induce@{seen.name}",
        anew=_cut_otherwise(seen, pipeline))
    add(_ask(params, seen), f"ask@{seen.name}")
    add(_contexts(params, seen, chunks), f"label@{seen.name}", "chunk")
    asked = [str(q["text"]) for q in seen.questions or ()]
    for name, its in params.embedders.items():
        cell = f"{seen.name}-{name}"
        add(_embed(
            params, seen, name, its, labelled, asked, chunks, counter, tokens, machine, rate
        ), f"embed@{cell}", "label", "ask")
        if seen.settings.units:
            work = _units(params, seen, name, its, tokens, machine, rate)
            add(work, f"units-retrieve@{cell}", "units")
        for work in _rerank(params, seen, name, chunks, machine, rate):
            add(work, f"rerank@{cell}", f"retrieve-{name}")
    made.work.append(_others(pipeline, seen.name, len(asked), machine))
    return made


def _until(seen: Seen, source: str) -> str:
    """A stage that leaves something else when it runs again, as a person names it; else ""."""
    stage, _, embedder = source.partition("-")
    named = "-".join(filter(None, (f"{stage}@{seen.name}", embedder)))
    return stage if named in seen.stale else ""


def _cut_otherwise(seen: Seen, pipeline: Pipeline) -> bool:
    """Whether the segmenter's own settings changed, so that none of its trees serves."""
    stage = pipeline.find(f"induce@{seen.name}")
    return stage is not None and "inducers" in stage.settings and seen.settings.inducer != "llm"


def _others(pipeline: Pipeline, name: str, questions: int, machine: Machine) -> Work:
    """Starting each stage, and what those without a model do."""
    stages = pipeline.of(name)
    due = [stage for stage in stages if stage.runs]
    counted = any(stage.name == f"infer@{name}" for stage in due)
    seconds = START * machine.start * len(due) + (EACH_S * questions if counted else 0.0)
    return Work(OTHERS, "stages", len(stages), len(due), seconds, _TABLES if due else 0)


def ending(pipeline: Pipeline, machine: Machine) -> float:
    """Seconds of the stages that all corpora share; `track` runs always."""
    due = sum(stage.runs for stage in pipeline.of(None))
    return ENDING * machine.start * due / max(1, len(pipeline.of(None)))


def _counter(params: Params, seen: Seen) -> float:
    """Tokens for each code point of the documents."""
    sample = "\n".join(d.body for d in seen.documents)[:SAMPLE]
    name = params.tokens.tokenizer
    if not sample:
        return 0.0
    if name == "words" or weights.found(params.embedders[name].model) is not None:
        try:
            return models.tokenizer(params).count(sample) / len(sample)
        except SpanwiseError:
            pass
    return 0.25  # English; the line on the tokenizer says that sizes are rough


def _labelled(seen: Seen) -> list[str] | None:
    """The texts that `label` left for these very documents."""
    from spanwise.labelling import texts

    path = layout.stage("label", seen.name) / "labels.parquet"
    if not seen.holds("label") or not path.exists():
        return None
    try:
        rows = schemas.read(path, schemas.LABELS)
        found = texts(rows, seen.documents)
    except (SpanwiseError, KeyError):  # of other documents after all
        return None
    same = [sha256(text) for text in found] == rows["text_sha256"].to_pylist()
    return found if same else None


def _counted_chunks(params: Params, seen: Seen, pipeline: Pipeline) -> dict[str, int]:
    """Chunks of each segmentation, from `chunk`, else from `label`, which a clone may have."""
    stage = pipeline.find(f"chunk@{seen.name}")
    if stage is not None and stage.settings == {"external"} and seen.holds("induce"):
        # What other packages cut is cut anew; the study's own segmentations stay.
        cut = _left_by("chunk", seen).get("segmentations", {})
        return {name: cut[name]["chunks"] for name in SEGMENTATIONS if name in cut}
    labels, report = _report("label", seen).get("labels", {}), _report("chunk", seen)
    named = {name: its.segmentation for name, its in params.labels().items()}
    found = {named[name]: its["chunks"] for name, its in labels.items() if name in named}
    cut = report.get("segmentations", {})
    return found | {name: its["chunks"] for name, its in cut.items()}


def _chunks(params: Params, seen: Seen, tokens: int) -> dict[str, int]:
    documents, cap = len(seen.documents), params.chunking.cap_tokens
    sizes = {"fixed": params.inducers.segmenter.section_tokens,
             "induced": params.inducers.segmenter.section_tokens, "native": _NATIVE_TOKENS,
             **dict.fromkeys(params.external, params.inducers.segmenter.section_tokens)}
    return {
        name: max(documents, round(tokens / min(cap, max(params.chunking.floor_tokens, each))))
        for name, each in sizes.items()
    }


def _report(stage: str, seen: Seen) -> Mapping[str, Any]:
    """A stage's report on these very documents, or nothing."""
    return _left_by(stage, seen) if seen.holds(stage) else {}


def _left_by(stage: str, seen: Seen) -> Mapping[str, Any]:
    """The report that a stage left on these very documents, whatever its settings were."""
    if not seen.unchanged:
        return {}
    try:
        return layout.read_report(layout.stage(stage, seen.name) / "report.json")
    except (InputError, json.JSONDecodeError):
        return {}


def _local(params: Params, each: float, left: int) -> float | None:
    return None if params.server.base_url is not None and left else each * left


def _gguf(params: Params, left: int) -> int:
    """Bytes of a language model that runs here, with the prompts that it keeps."""
    known = models.GGUFS.get(params.llm.model)
    return known.size + 2**30 if known and left and params.server.base_url is None else 0


def _encode(
    its: EmbedderSettings, tokens: float, texts: int, machine: Machine,
    rate: Callable[[int], float], rounds: int = 1,
) -> tuple[float | None, int]:
    """Seconds and bytes of memory; each round starts its processes anew."""
    if not texts:
        return 0.0, 0
    model = weights.shape(its.model)
    processes = min(machine.processes, max(1, texts // 16))
    memory = processes * (_PROCESS + model.weights)
    if its.device == "cuda":
        return None, _PROCESS + model.weights
    speed = rate(model.width) * min(processes, machine.cores)
    loading = rounds * LOAD * machine.start * max(1.0, processes / machine.cores)
    return loading + model.operations(tokens, texts) / speed, memory


def _induce(
    params: Params, seen: Seen, tokens: int, machine: Machine, rate: Callable[[int], float]
) -> Work:
    report, inducer = _report("induce", seen), seen.settings.inducer
    by_model = inducer != "segmenter"
    model = report.get("titles", report.get("outlines", report)).get("model")
    kept = report.get("inducer") == inducer and (
        not by_model or model in (None, params.llm.model)
    )
    documents = len(seen.documents)
    left = 0 if kept else documents
    seconds, memory = 0.0, _gguf(params, left if by_model else 0)
    if left and inducer != "llm":
        its = params.embedders[params.inducers.segmenter.embedder]
        spent, held = _encode(its, tokens, max(1, tokens // 25), machine, rate, 2)
        seconds, memory = spent or 0.0, max(memory, held)
    if by_model:
        asked = _local(params, TREE_S, left)
        return Work(f"induce ({inducer})", "documents", documents, left,
                    None if asked is None else asked + seconds, memory)
    return Work(f"induce ({inducer})", "documents", documents, left, seconds, memory)


def _ask(params: Params, seen: Seen) -> Work:
    if seen.settings.questions != "written":
        return Work("ask", "requests", 0, 0, 0.0)
    most = 4 * params.writing.per_type * len(seen.documents)
    left = most if seen.questions is None or not seen.holds("ask") else 0
    return Work("ask", "questions", most, left, _local(params, QUESTION_S, left),
                _gguf(params, left))


def _contexts(params: Params, seen: Seen, chunks: Mapping[str, int]) -> Work:
    cut = {c.segmentation for c in params.conditions.values() if c.prefix == "context"}
    if not seen.settings.contexts or not cut:
        return Work("label", "contexts", 0, 0, 0.0)
    of = sum(chunks[name] for name in sorted(cut))
    kept = _report("label", seen).get("contexts")
    mine = isinstance(kept, Mapping) and kept.get("model") in (None, params.llm.model)
    left = 0 if mine else of
    if left and seen.unchanged:
        left = max(1, of - _answers(layout.stage("label", seen.name)))
    return Work("label", "contexts", of, left, _local(params, CONTEXT_S, left),
                _gguf(params, left))


def _answers(folder: Path) -> int:
    """Lines that the language model answered before a run was interrupted."""
    return sum(path.read_bytes().count(b"\n") for path in sorted(folder.glob("part-*.jsonl")))


def _embed(
    params: Params, seen: Seen, name: str, its: EmbedderSettings, labelled: Sequence[str] | None,
    asked: Sequence[str], chunks: Mapping[str, int], counter: float, tokens: int,
    machine: Machine, rate: Callable[[int], float],
) -> Work:
    """Vectors of labelled chunks and questions."""
    queries = [query_text(its, text) for text in asked]
    folder = layout.cell("embed", seen.name, name)
    if labelled is not None:
        held = _keys(folder)
        distinct = set(labelled) | set(queries)
        missing = [text for text in distinct if key(its, text) not in held]
        of, left, inside = len(distinct), len(missing), counter * sum(map(len, missing))
    else:
        inside, left = counter * sum(map(len, queries)), len(set(queries))
        for condition in params.labels().values():
            if condition.prefix == "context" and not seen.settings.contexts:
                continue
            before = {"none": 0, "context": CONTEXT}.get(condition.prefix, PATH)
            inside += tokens + before * chunks[condition.segmentation]
            left += chunks[condition.segmentation]
        of = left
    seconds, memory = _encode(its, inside, left, machine, rate)
    # Vectors and their index, in the workspace and in DVC's cache; the text of each label.
    disk = left * weights.shape(its.model).width * 4 * 4
    return Work(f"embed {name}", "texts", of, left, seconds, memory, disk)


def _keys(folder: Path) -> set[str]:
    import pyarrow.parquet as pq

    held: set[str] = set()
    for path in sorted(folder.glob("*.parquet")):
        try:
            held.update(pq.read_table(path, columns=["key"])["key"].to_pylist())
        except (OSError, ValueError, KeyError):
            continue  # a damaged file holds nothing
    return held


def _units(
    params: Params, seen: Seen, name: str, its: EmbedderSettings, tokens: int, machine: Machine,
    rate: Callable[[int], float],
) -> Work:
    """The study of units embeds every text three times more: blocks, sections, windows."""
    windows = params.units.windows
    step = windows.size_tokens - windows.overlap_tokens
    counted = _report("units", seen).get("units", {})
    # A block is a paragraph or a heading; a section has a heading.
    headings = sum(len(d.headings) for d in seen.documents)
    paragraphs = sum(len(d.paragraphs) for d in seen.documents)
    of = sum(counted.values()) or (
        paragraphs + 2 * headings + len(seen.documents) + round(tokens / step)
    )
    # Vectors of units are no output, so they are counted where this machine has them.
    held = len(_keys(layout.unit_vectors(seen.name, name))) if seen.holds("units") else 0
    left = max(0, of - held)
    inside = tokens * (2 + windows.size_tokens / step) * left / max(1, of)
    seconds, memory = _encode(its, inside, left, machine, rate)
    return Work(f"units-retrieve {name}", "units", of, left, seconds, memory)


def _rerank(
    params: Params, seen: Seen, name: str, chunks: Mapping[str, int], machine: Machine,
    rate: Callable[[int], float],
) -> list[Work]:
    """Pairs of questions and what was retrieved for them; conditions may share some."""
    import pyarrow.parquet as pq

    made = []
    for reranker, its in params.rerankers.items():
        of = sum(
            min(its.top, chunks[condition.segmentation]) * len(seen.questions or ())
            for condition in params.conditions.values()
            if condition.retrieval != "bm25"
            and (condition.prefix != "context" or seen.settings.contexts)
        )
        path = layout.reranked(seen.name, name, reranker) / "pairs.parquet"
        held = pq.read_metadata(path).num_rows if path.exists() else 0
        left = 0 if held and seen.holds("rerank", name) else of
        as_encoder = EmbedderSettings(model=its.model, pooling="mean", device=its.device,
                                      batch_size=its.batch_size)
        seconds, memory = _encode(as_encoder, left * 230.0, left, machine, rate)
        made.append(Work(f"rerank {name} {reranker}", "pairs", of, left, seconds, memory))
    return made

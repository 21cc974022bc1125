"""params.yaml as frozen, strict models: unknown keys and impossible values never get to work."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    ValidationError,
    model_validator,
)

from spanwise.errors import ParamsError

MEASURES = (
    "cov_ndcg@10", "recall@50", "mrr", "ndcg@10", "coverage@512", "coverage@1024", "coverage@2048",
    "sufficient@3", "bundle_coverage@3",
)

RESERVED = frozenset({"bm25", "units", "standing", "demonstration"})
"""Names that stand where an embedder's would in outputs."""

WITHOUT = "none"
"""Stands for the reranker of a cell that has none."""


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]+", value):
        raise ValueError(f"{value!r}: names are lower-case letters, digits and hyphens")
    return value


Name = Annotated[str, AfterValidator(_name)]


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=False
    )


class SplitSettings(_Settings):
    """Documents that a seed draws for sweeps: they leave the study, with the questions about them.

    share: of the corpus's documents; 0 draws none.
    """

    share: Annotated[float, Field(ge=0, lt=1, strict=False)] = 0.0
    seed: Annotated[int, Field(ge=0)] = 20260710


class CorpusSettings(_Settings):
    """Where a corpus lies, how it is read, who makes its induced structure and its questions.

    contexts:  the language model writes a context for each chunk that a condition wants one for.
    units:     the study of exact evidence units runs on it too.
    questions: `written` by the language model, or a question file of people's in `questions/`.
    sweep:     what is drawn for sweeps, for a corpus whose manifest names no split for them.
    """

    reader: Literal[
        "markdown", "text", "qasper", "mediawiki", "chroma", "folder", "beir", "snippets"
    ]
    path: str
    demonstration: bool = False
    inducer: Literal["segmenter", "hybrid", "llm"] = "segmenter"
    contexts: bool = False
    questions: str | None = None  # None: those that its format brings
    units: bool = False
    sweep: SplitSettings = SplitSettings()
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)


class EmbedderSettings(_Settings):
    """A sentence-transformers model: its hub id (or a folder), pooling and query prompt."""

    model: str
    pooling: Literal["mean", "cls"]
    query_prompt: str = ""
    max_seq_length: PositiveInt = 512
    device: Literal["cpu", "cuda"] = "cpu"
    batch_size: PositiveInt = 1  # 1 is canonical: bits that depend on nothing else that was asked

    @model_validator(mode="after")
    def _canonical_or_gpu(self) -> Self:
        if self.device == "cpu" and self.batch_size != 1:
            raise ValueError("batch_size is 1 on the cpu: batches are no faster there, and inexact")
        return self


class RerankerSettings(_Settings):
    """A model that reads a question and a text together: its hub id (or a folder), who runs it.

    kind:       `cross-encoder` of sentence-transformers, or FlagEmbedding's `flag`.
    top:        ranks that it reorders; what stands below leaves the list.
    max_length: tokens of question and text together, special ones included.
    """

    model: str = Field(min_length=1)
    kind: Literal["cross-encoder", "flag"]
    top: PositiveInt = 50
    max_length: Annotated[int, Field(ge=16)] = 512
    device: Literal["cpu", "cuda"] = "cpu"
    batch_size: PositiveInt = 1  # as an embedder's

    @model_validator(mode="after")
    def _canonical_or_gpu(self) -> Self:
        if self.device == "cpu" and self.batch_size != 1:
            raise ValueError("batch_size is 1 on the cpu: batches are no faster there, and inexact")
        return self


class TokenSettings(_Settings):
    """The one tokenizer of the study: an embedder's name or `words`."""

    tokenizer: str


class ChunkingSettings(_Settings):
    """Sizes in tokens, without special tokens."""

    cap_tokens: PositiveInt
    floor_tokens: PositiveInt
    size_tolerance_tokens: Annotated[float, Field(ge=0, strict=False)] = 5

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.floor_tokens * 2 > self.cap_tokens:
            raise ValueError(
                "floor_tokens above half of cap_tokens: a split would make small parts"
            )
        return self


SEGMENTATIONS = ("fixed", "induced", "native")
"""Those that are made here; entries of `external` are more."""


UNITS = ("blocks", "sections", "windows")
"""Segmentations of the study of units, which has no others."""


class ExternalSettings(_Settings):
    """A segmentation that another package cuts.

    package:    the module that `callable` is found in, e.g. `langchain_text_splitters`.
    callable:   a class that is made with `args`, or a function of a text and `args`.
    version:    of the package: another one that is installed is refused.
    method:     of the object that takes a text; None: the first it has of those that splitters use.
    gives:      `spans`, or `strings`, whose spans are then recovered, or the stage stops.
    whitespace: of strings: they stand in the text as they are, or with other white space.
    overlap:    of strings: code points that neighbours share at most; None: any number.
    tree:       whose sections give chunks their paths and what they are routed by.
    """

    package: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
    callable: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
    version: Annotated[str, Field(min_length=1)]
    args: dict[str, JsonValue] = Field(default_factory=dict)
    method: str | None = None
    gives: Literal["spans", "strings"]
    whitespace: Literal["exact", "collapsed"] = "exact"
    overlap: Annotated[int, Field(ge=0)] | None = None
    tree: Literal["native", "induced"] = "native"

    @model_validator(mode="after")
    def _of_strings(self) -> Self:
        if self.gives == "spans" and (self.whitespace != "exact" or self.overlap is not None):
            raise ValueError("whitespace and overlap are of strings; spans need neither")
        return self


class SegmenterSettings(_Settings):
    """Hierarchical segmentation on sentence vectors, without a language model."""

    embedder: Name
    levels: Annotated[int, Field(ge=1, le=4)]
    section_tokens: PositiveInt


class InducerSettings(_Settings):
    """Settings of each inducer by name."""

    segmenter: SegmenterSettings


class PlaceboSettings(_Settings):
    """Depth that paths are cut to before they are bucketed, and the seed of the permutation."""

    depth: PositiveInt
    seed: int


class ContextSettings(_Settings):
    """Tokens that a generated context should have, by the study's tokenizer."""

    least_tokens: PositiveInt = 50
    most_tokens: PositiveInt = 100

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least_tokens >= self.most_tokens:
            raise ValueError("least_tokens is below most_tokens")
        return self


class PrefixSettings(_Settings):
    """Settings of each prefix that has any."""

    placebo: PlaceboSettings
    context: ContextSettings = ContextSettings()


class LlmSettings(_Settings):
    """The language model: all that its answers depend on.

    context_tokens: what prompt and answer may take together.
    """

    model: str = Field(min_length=1)
    seed: Annotated[int, Field(ge=0)] = 1
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] = 0.0
    context_tokens: Annotated[int, Field(ge=2048)] = 4096


class ServerSettings(_Settings):
    """How the language model is reached; answers are not kept by it.

    base_url:         of an OpenAI-compatible server, with its `/v1`; None starts llama.cpp here.
    api_key_variable: environment variable that holds the server's key, "" for none.
    threads:          of a server that is started here; 0 for one fewer than the cores.
    """

    base_url: str | None = None
    api_key_variable: str = ""
    concurrency: PositiveInt = 1
    timeout_s: Annotated[float, Field(gt=0, strict=False)] = 600.0
    retries: Annotated[int, Field(ge=0)] = 3
    threads: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _without_secrets(self) -> Self:
        if self.base_url is not None and set(self.base_url) & set("@?#"):
            # The address itself is not repeated: what stands in it may be a key.
            raise ValueError(
                "base_url holds a user, a password or a query; the key goes into an environment "
                "variable that api_key_variable names, never into the address"
            )
        return self


class WritingSettings(_Settings):
    """How questions are written for a corpus that has none, and which of them are let through.

    per_type: spans that are drawn in each document for each type of question.
    cap:      questions of each type that the corpus keeps at most.
    rouge_l:  highest ROUGE-L F1 against a gold span that passes.
    ngram:    shortest run of words shared with a gold span that rejects.
    """

    per_type: PositiveInt = 3
    cap: PositiveInt = 250
    seed: Annotated[int, Field(ge=0)] = 20260710
    rouge_l: Annotated[float, Field(ge=0, le=1, strict=False)] = 0.35
    ngram: PositiveInt = 4


class Bm25Settings(_Settings):
    """BM25's two constants."""

    k1: Annotated[float, Field(gt=0, strict=False)]
    b: Annotated[float, Field(ge=0, le=1, strict=False)]


class RetrievalSettings(_Settings):
    """How deep rankings go, how many sections routing keeps."""

    depth: PositiveInt
    sections: PositiveInt
    bm25: Bm25Settings


class Condition(_Settings):
    """One row of the conditions table."""

    segmentation: str  # of SEGMENTATIONS, or a name in `external`
    prefix: Literal["none", "path", "placebo", "context"]
    depth: Annotated[int, Field(ge=0, le=4)]
    retrieval: Literal["flat", "routed", "bm25"]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.prefix in ("path", "placebo")) != (self.depth > 0):
            raise ValueError("depth is above 0 for path and placebo, and 0 otherwise")
        if self.segmentation == "fixed" and (self.depth or self.retrieval == "routed"):
            raise ValueError("fixed chunks have no structure: no path, no placebo, no routing")
        if self.retrieval == "bm25" and self.prefix != "none":
            raise ValueError("bm25 searches content alone: prefix none")
        return self

    @property
    def label(self) -> str:
        """The chunks and prefixes it searches, e.g. `induced-path-3`: what two conditions share."""
        return f"{self.segmentation}-{self.prefix}-{self.depth}"


class PrimarySettings(_Settings):
    """The cell and the measure that were fixed beforehand."""

    measure: str
    embedder: Name
    reranker: Name

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.measure not in MEASURES:
            raise ValueError(f"measure {self.measure!r}: one of {', '.join(MEASURES)}")
        return self


class InferenceSettings(_Settings):
    """Draws of the bootstrap, their seed, and the smallest effect of interest."""

    iterations: PositiveInt
    seed: Annotated[int, Field(ge=0)]
    margin: Annotated[float, Field(gt=0, strict=False)]


class WindowSettings(_Settings):
    """Windows of the study of units, in tokens of the study's tokenizer."""

    size_tokens: PositiveInt = 48
    overlap_tokens: Annotated[int, Field(ge=0)] = 12

    @model_validator(mode="after")
    def _moves_on(self) -> Self:
        if self.overlap_tokens >= self.size_tokens:
            raise ValueError(
                f"overlap_tokens {self.overlap_tokens} is not below size_tokens "
                f"{self.size_tokens}: such windows never move on; lower the overlap"
            )
        return self


Rising = Annotated[list[PositiveInt], Field(min_length=1)]


class UnitsSettings(_Settings):
    """The study of exact evidence units.

    cutoffs:    units that are looked at, one after the other.
    characters: budgets in code points; tokens: budgets in tokens.
    depth:      of the rankings; budgets are filled from no more.
    """

    windows: WindowSettings = WindowSettings()
    cutoffs: Rising = [1, 3, 5, 10]
    characters: Rising = [500, 1000, 2000, 4000]
    tokens: Rising = [128, 256, 512, 1024]
    depth: PositiveInt = 100

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for name in ("cutoffs", "characters", "tokens"):
            values = getattr(self, name)
            if sorted(set(values)) != values:
                raise ValueError(f"{name} {values}: each once, smallest first")
        if self.cutoffs[-1] > self.depth:
            raise ValueError(f"cutoff {self.cutoffs[-1]} is above the depth of {self.depth}")
        return self


Range = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]
Segmentations = Annotated[list[Literal["fixed", "induced", "native"]], Field(min_length=1)]


class SweepSettings(_Settings):
    """What a sweep explores, on documents of its own. Nothing here moves a result of the study.

    Ranges are the lowest and the highest value, both included.
    trials:         that a sweep ends with, failed ones among them.
    startup:        trials drawn at random before the sampler learns from earlier ones.
    embedder:       of `embedders`, or `bm25`; None: the first that is not the primary cell's.
    window_tokens:  of fixed chunks, on average; overlap_tokens: what one repeats of the one before.
    cap_tokens:     of structural chunks: above it they are split; below floor_tokens, merged.
    depths:         of the heading path before structural chunks; 0 is no prefix.
    sections:       that routing keeps.
    step_tokens:    between sizes that are tried: the same sizes share their chunks.
    """

    trials: PositiveInt = 50
    startup: PositiveInt = 10
    seed: Annotated[int, Field(ge=0)] = 20260710
    embedder: str | None = None
    segmentations: Segmentations = ["fixed", "induced", "native"]
    window_tokens: Range = [50, 350]
    overlap_tokens: Range = [0, 40]
    cap_tokens: Range = [120, 500]
    floor_tokens: Range = [10, 60]
    depths: Range = [0, 3]
    sections: Range = [1, 10]
    step_tokens: PositiveInt = 10

    @model_validator(mode="after")
    def _possible(self) -> Self:
        least = {"window_tokens": 1, "overlap_tokens": 0, "cap_tokens": 1, "floor_tokens": 1,
                 "depths": 0, "sections": 1}
        for name, lowest in least.items():
            low, high = getattr(self, name)
            if not lowest <= low <= high:
                raise ValueError(f"{name} {[low, high]}: lowest and highest, from {lowest} on")
        if self.depths[1] > 4:
            raise ValueError(f"depths {self.depths}: 4 is the deepest")
        if self.overlap_tokens[1] >= self.window_tokens[0]:
            raise ValueError("the highest of overlap_tokens is not below the lowest window_tokens")
        if self.floor_tokens[1] * 2 > self.cap_tokens[0]:
            raise ValueError("the highest of floor_tokens is above half the lowest of cap_tokens")
        if len(set(self.segmentations)) < len(self.segmentations):
            raise ValueError(f"segmentations {self.segmentations}: each once")
        return self


Pair = Annotated[list[str], Field(min_length=2, max_length=2)]


class Params(_Settings):
    """The whole study. Every reference between its parts is checked when it is read."""

    corpora: dict[Name, CorpusSettings] = Field(min_length=1)
    embedders: dict[Name, EmbedderSettings] = Field(min_length=1)
    rerankers: dict[Name, RerankerSettings] = Field(default_factory=dict)
    tokens: TokenSettings
    chunking: ChunkingSettings
    external: dict[Name, ExternalSettings] = Field(default_factory=dict)
    inducers: InducerSettings
    prefixes: PrefixSettings
    llm: LlmSettings
    server: ServerSettings = ServerSettings()
    writing: WritingSettings = WritingSettings()
    retrieval: RetrievalSettings
    conditions: dict[str, Condition] = Field(min_length=1)
    contrasts: dict[str, Pair] = Field(min_length=1)
    steps: dict[str, Pair] = Field(default_factory=dict)
    primary: PrimarySettings
    inference: InferenceSettings
    units: UnitsSettings = UnitsSettings()
    sweep: SweepSettings = SweepSettings()

    @model_validator(mode="after")
    def _refer(self) -> Self:
        for kind, pairs in (("contrast", self.contrasts), ("step", self.steps)):
            for name, pair in pairs.items():
                for condition in pair:
                    if condition not in self.conditions:
                        raise ValueError(
                            f"{kind} {name} names condition {condition!r}, which is no row of "
                            f"conditions; rows are {', '.join(self.conditions)}"
                        )
                if pair[0] == pair[1]:
                    raise ValueError(f"{kind} {name} holds {pair[0]} against itself; name two rows")
        if both := self.contrasts.keys() & self.steps.keys():
            raise ValueError(f"{sorted(both)} stand in contrasts and in steps")
        if taken := self.embedders.keys() & RESERVED:
            raise ValueError(f"embedder {sorted(taken)[0]!r}: outputs have that name; take another")
        if self.primary.embedder not in self.embedders:
            raise ValueError(f"primary.embedder {self.primary.embedder!r} is no entry of embedders")
        if WITHOUT in self.rerankers:
            raise ValueError(f"reranker {WITHOUT!r}: it stands for no reranker; take another name")
        if self.primary.reranker not in (WITHOUT, *self.rerankers):
            raise ValueError(
                f"primary.reranker {self.primary.reranker!r} is no entry of rerankers, nor "
                f"`{WITHOUT}`"
            )
        for name, reranker in self.rerankers.items():
            if reranker.top > self.retrieval.depth:
                raise ValueError(
                    f"rerankers.{name}.top {reranker.top} is above retrieval.depth "
                    f"{self.retrieval.depth}: no ranking is that long"
                )
        if self.tokens.tokenizer != "words" and self.tokens.tokenizer not in self.embedders:
            raise ValueError(
                f"tokens.tokenizer {self.tokens.tokenizer!r} is no embedder, nor `words`"
            )
        if self.inducers.segmenter.embedder not in self.embedders:
            raise ValueError("inducers.segmenter.embedder is no entry of embedders")
        if self.sweep.embedder not in (None, "bm25", *self.embedders):
            raise ValueError(f"sweep.embedder {self.sweep.embedder!r} is no embedder, nor `bm25`")
        if self.sweep.embedder == self.primary.embedder:
            raise ValueError(
                f"sweep.embedder {self.sweep.embedder!r} is the primary cell's: a sweep never "
                "touches that cell; name another embedder, or `bm25`"
            )
        for name, corpus in self.corpora.items():
            if not f"{corpus.path.rstrip('/')}/".startswith(f"data/{name}/"):
                raise ValueError(
                    f"corpora.{name}.path {corpus.path!r}: a corpus lies in data/{name}, which its "
                    "stages depend on; move it there"
                )
            if not re.fullmatch(r"written|questions/[\w./-]+", corpus.questions or "written"):
                raise ValueError(
                    f"corpora.{name}.questions {corpus.questions!r}: expected `written` or a file "
                    "in questions/, which the stage `ask` depends on, e.g. questions/notes.jsonl"
                )
        if taken := self.external.keys() & {*SEGMENTATIONS, *UNITS}:
            raise ValueError(
                f"external {sorted(taken)[0]!r}: a segmentation of spanwise has that name; take "
                "another"
            )
        for name, its in self.conditions.items():
            if its.segmentation not in (*SEGMENTATIONS, *self.external):
                expected = ", ".join((*SEGMENTATIONS, *self.external))
                raise ValueError(
                    f"conditions.{name}.segmentation: expected one of {expected} (or an entry of "
                    f"`external` to be made), found {its.segmentation!r}"
                )
            if not re.fullmatch(r"[A-Za-z0-9-]+", name):
                raise ValueError(f"condition {name!r}: letters, digits and hyphens")
        return self

    def embedder(self, name: str) -> EmbedderSettings:
        """Settings of one embedder.

        raises: ParamsError if there is none of that name.
        """
        if name not in self.embedders:
            raise ParamsError(f"no embedder {name!r}; params.yaml has {', '.join(self.embedders)}")
        return self.embedders[name]

    def corpus(self, name: str) -> CorpusSettings:
        """Settings of one corpus.

        raises: ParamsError if there is none of that name.
        """
        if name not in self.corpora:
            raise ParamsError(f"no corpus {name!r}; params.yaml has {', '.join(self.corpora)}")
        return self.corpora[name]

    def labels(self) -> dict[str, Condition]:
        """Each distinct (segmentation, prefix, depth) once, in table order, with a condition that
        stands for it. bm25 shares the chunks of its label, so it adds none of its own."""
        found: dict[str, Condition] = {}
        for condition in self.conditions.values():
            found.setdefault(condition.label, condition)
        return found


def from_mapping(settings: Mapping[str, Any], where: str = "params.yaml") -> Params:
    """Check settings and freeze them.

    raises: ParamsError that lists each wrong place.
    """
    try:
        return Params.model_validate(settings)
    except ValidationError as error:
        places = "\n".join(
            # What is wrong between parts names its place itself.
            f"  {': '.join(filter(None, ['.'.join(map(str, item['loc'])), _complaint(item)]))}"
            for item in error.errors(include_url=False)
        )
        raise ParamsError(f"{where} does not describe a study:\n{places}") from None


def _complaint(item: Mapping[str, Any]) -> str:
    """What is wrong in one place: what was found, what is expected, and the nearest known key."""
    kind, found, details = item["type"], item["input"], item.get("ctx", {})
    if kind == "missing":
        return "missing; add it"
    if kind == "value_error":  # one of ours, which says it all
        return str(details["error"])
    if kind == "extra_forbidden":
        from difflib import get_close_matches

        known = _known(item["loc"][:-1])
        near = get_close_matches(str(item["loc"][-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return f"unknown key; {hint} (Extra inputs are not permitted)"
    if kind == "literal_error":
        return f"expected {details['expected']}, found {found!r}"
    if kind in ("model_type", "dict_type"):
        return f"expected a mapping of keys to values, found {_shown(found)}"
    if kind in ("too_short", "too_long"):
        return f"{item['msg'].partition(' after ')[0]}, found {details['actual_length']}"
    return f"{item['msg'].replace('Input should be', 'expected')}, found {_shown(found)}"


def _known(place: Sequence[str | int]) -> list[str]:
    """The keys that a mapping inside the settings may have, by its place."""
    model: Any = Params
    for part in place:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(part)].annotation
        else:  # entries by name: dict[Name, Settings]
            model = get_args(model)[1]
    return list(model.model_fields)


def _shown(value: object) -> str:
    """A value as a person would point at it: what it is, and itself if it is short."""
    if value is None:
        return "nothing"
    text = repr(value)
    kinds: dict[type, str] = {str: "text", dict: "a mapping", list: "a list"}
    kind = kinds.get(type(value), "")
    return f"{kind} {text}".strip() if len(text) <= 40 else kind or type(value).__name__


def load(path: Path = Path("params.yaml")) -> Params:
    """Read and check params.yaml.

    raises: ParamsError if it is missing, is not YAML in UTF-8, names something twice in one place,
            or does not describe a study.
    """
    import yaml

    class Once(yaml.SafeLoader):
        """Plain YAML would silently keep the last of two entries of one name."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} stands twice", key.start_mark
                    )
                seen.add(str(key.value))
            return super().construct_mapping(node, deep=deep)

    if not path.exists():
        raise ParamsError(f"{path}: not found; run spanwise in the project's root")
    try:
        settings = yaml.load(path.read_text(encoding="utf-8"), Once)
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path} cannot be read as UTF-8 text: {error}") from None
    except yaml.YAMLError as error:
        raise ParamsError(f"{path} is not YAML: {error}") from None
    if not isinstance(settings, dict):
        raise ParamsError(f"{path}: expected a mapping, found {type(settings).__name__}")
    return from_mapping(settings, str(path))

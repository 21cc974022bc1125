"""What differs from the registration, in words: `infer` names settings by their keys.

A key that is not known here is shown as it is, so nothing is ever left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spanwise.reporting.markup import esc, tag, words

# The first pattern that the whole key matches gives its words; \1 is what a group caught.
_KEYS: tuple[tuple[str, str], ...] = (
    (r"corpora\.[^.]+\.inducer", "who drew the induced sections"),
    (r"corpora\.[^.]+\.contexts", "whether a language model wrote contexts"),
    (r"corpora\.[^.]+\.context(?:\.(.+))?", r"settings of the contexts \1"),
    (r"corpora\.[^.]+\.llm(?:\.(.+))?", r"the language model \1"),
    (r"corpora\.[^.]+\.reader", "the format that the corpus is read as"),
    (r"corpora\.[^.]+\.path", "the folder of the corpus"),
    (r"corpora\.[^.]+\.demonstration", "whether the corpus is a demonstration"),
    (r"corpora\.[^.]+\.questions(?:\.(.+))?", r"the source of the questions \1"),
    (r"corpora\.[^.]+\.(.+)", r"the corpus: \1"),
    (r"contrasts\.(.+)", r"contrast \1"),
    (r"primary\.(.+)", r"the primary cell: \1"),
    (r"measures", "the measures"),
    (r"exclusions", "which questions are excluded"),
    (r"inference\.iterations", "draws of the bootstrap"),
    (r"inference\.seed", "the seed of the bootstrap"),
    (r"inference\.margin", "the smallest effect of interest"),
    (r"conditions\.([^.]+)\.segmentation", r"where condition \1 cuts"),
    (r"conditions\.([^.]+)\.prefix", r"what stands before a chunk in condition \1"),
    (r"conditions\.([^.]+)\.depth", r"levels of the path in condition \1"),
    (r"conditions\.([^.]+)\.retrieval", r"how condition \1 searches"),
    (r"conditions\.(.+)", r"condition \1"),
    (r"embedder(?:\.(.+))?", r"the strong embedder: \1"),
    (r"encoders\.(.+)", r"the embedder \1"),
    (r"reranker(?:\.(.+))?", r"the reranker: \1"),
    (r"tokens\.tokenizer", "what counts tokens"),
    (r"chunking\.cap_tokens", "the largest chunk, in tokens"),
    (r"chunking\.floor_tokens", "the smallest chunk, in tokens"),
    (r"chunking\.size_tolerance_tokens", "how far mean sizes may lie apart, in tokens"),
    (r"inducers\.(.+)", r"how sections are induced: \1"),
    (r"prefixes\.placebo\.(.+)", r"the placebo: \1"),
    (r"prefixes\.context\.(.+)", r"the contexts: \1"),
    (r"retrieval\.depth", "how many chunks a ranking holds"),
    (r"retrieval\.sections", "how many sections routing keeps"),
    (r"retrieval\.bm25\.(.+)", r"BM25's \1"),
    (r"llm\.(.+)", r"the language model: \1"),
    (r"statistics\.(.+)", r"the rules of inference: \1"),
    (r"external\.(.+)", r"the segmentation of another package: \1"),
)
_VALUES = {"true": "yes", "false": "no", "null": "none"}
_CHANGED = re.compile(r"(documents|questions) changed since registration \((.+)\)")
_SETTING = re.compile(
    r"(?P<key>\w[^:\s]*): (?:registered (?P<was>.+), ran (?P<now>.+)|(?P<ran>ran, not registered)|"
    r"(?P<gone>registered, not in what ran))", re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference. words: a sentence without its stop; key: of params.yaml, or the digests, or
    None where the sentence has it all."""

    words: str
    key: str | None = None

    def __str__(self) -> str:
        return self.words + (f" ({self.key})" if self.key else "")

    def html(self) -> str:
        """The sentence, its key small beside it."""
        key = tag("small", tag("code", esc(self.key))) if self.key else ""
        return f"{esc(self.words)} {key}".rstrip()


def deviation(text: str) -> Deviation:
    """A difference as `infer` lists it, for a person.

    >>> str(deviation("corpora.toy.inducer: registered segmenter, ran hybrid"))
    'Who drew the induced sections: registered segmenter, ran hybrid (corpora.toy.inducer)'
    >>> str(deviation("corpus toy is not registered"))
    'Corpus toy is not registered'
    """
    if changed := _CHANGED.fullmatch(text):
        return Deviation(f"The {changed[1]} are not those that were registered", changed[2])
    found = _SETTING.fullmatch(text)
    if found is None:
        return Deviation(_sentence(text))
    if found["ran"]:
        what = "was not registered, but ran"
    elif found["gone"]:
        what = "was registered, but did not run"
    else:
        was, now = (_VALUES.get(found[side], found[side]) for side in ("was", "now"))
        what = f"registered {was}, ran {now}"
    return Deviation(_sentence(f"{_named(found['key'])}: {what}"), found["key"])


def _named(key: str) -> str:
    for pattern, name in _KEYS:
        if found := re.fullmatch(pattern, key):
            told = found.expand(name) if found.re.groups else name
            return words(told).replace(".", ", ").strip(" :")
    return words(key).replace(".", ", ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

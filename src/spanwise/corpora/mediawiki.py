"""Wikipedia articles from a MediaWiki dump, sampled as the study did; a dump holds no questions.

Decisions:
- The walk goes through all articles (all featured ones with `featured_only`): their titles sorted,
  then permuted by numpy's default generator from the seed. It accepts until `articles` are in.
- An article is judged by words (white-space separated pieces of `body`), then depth (of its
  headings; `==` is 1), then sections (headings with a title), then its bucket; it is counted under
  the first that fails. What the walk does not reach is counted as well.
- The file is streamed: once for the titles, then once or more for the articles that the walk may
  come to next. What is held beside is a title for each article and the documents of one stretch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from spanwise.corpora.buckets import BUCKETS, bucket_of, categories, is_featured
from spanwise.corpora.dump import Page, dump_files, pages
from spanwise.corpora.wikitext import flatten, read_wikitext
from spanwise.documents.model import Corpus, Document, document_id
from spanwise.errors import CorpusError, ParamsError

__all__ = ["Settings", "read", "read_wikitext"]

FEATURED = "featured"


@dataclass(frozen=True, slots=True)
class Settings:
    """The reader's options; the study's values are the defaults.

    articles: how many to accept at most (>= 1).
    seed:     of the walk.
    """

    min_words: int = 3000
    min_depth: int = 3
    min_sections: int = 12
    max_per_bucket: int = 60
    articles: int = 200
    seed: int = 20260710
    featured_only: bool = False

    @classmethod
    def of(cls, options: Mapping[str, int | float | str | bool]) -> Settings:
        """Options as settings.

        raises: ParamsError for an unknown option, one of the wrong type or out of range.
        """
        known = {field.name: field.default for field in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise ParamsError(f"mediawiki: option {name!r} is unknown; known: {sorted(known)}")
            if type(value) is not type(known[name]):
                kind = type(known[name]).__name__
                raise ParamsError(f"mediawiki: option {name} is {value!r}, expected {kind}")
            least = int(name in ("articles", "max_per_bucket"))
            if value < least:
                raise ParamsError(f"mediawiki: option {name} is {value}, expected {least} or more")
        return cls(**options)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Article:
    """A judged article: why it is rejected, or its document (whose bucket may yet be full)."""

    rejected: str | None
    bucket: str
    document: Document | None
    mended: int


def read(
    path: Path, *, options: Mapping[str, int | float | str | bool], split: str = "study"
) -> Corpus:
    """Read a dump file, or the parts of one in a folder, and sample its articles.

    options: the fields of Settings.
    split:   `study`; the format has no other.
    returns: documents without raw text, labelled with their bucket and `featured`; the version is
             the revision. No questions. Counts: the pages by kind, then the walk's funnel.
    raises:  ParamsError for an option; CorpusError for what `pages` refuses, for a title that
             occurs twice, and if no article is accepted.
    """
    settings = Settings.of(options)
    if split != "study":
        raise CorpusError(f"{path}: a dump has no {split} split, only study")
    files = dump_files(path)
    counts: Counter[str] = Counter(dict.fromkeys(
        ("pages", "pages: redirects", "pages: other namespaces", "pages: without wikitext",
         "articles", "articles: featured"), 0))
    candidates = _candidates(files, settings, counts)
    titles = sorted(candidates)
    order = [titles[i] for i in np.random.default_rng(settings.seed).permutation(len(titles))]
    accepted, funnel = _walk(order, candidates, files, settings)
    counts.update(funnel)
    if not accepted:
        said = ", ".join(f"{name}: {n}" for name, n in counts.items())
        raise CorpusError(
            f"{path}: no article is accepted ({said}); "
            "lower min_words, min_depth or min_sections"
        )
    return Corpus(
        tuple(sorted(accepted, key=lambda document: document.doc_id)), (), "body", dict(counts)
    )


def words_at_most(wikitext: str) -> int:
    """No less than the number of words that can remain of a wikitext, without parsing it.

    Every word that the normaliser emits uses up a word or a sign of the source.
    """
    return sum(1 for _ in re.finditer(r"\w+|[^\w\s]", wikitext))


def _candidates(files: list[Path], settings: Settings, counts: Counter[str]) -> dict[str, bool]:
    """Titles of the articles that the walk goes through, and whether each may have enough words."""
    candidates: dict[str, bool] = {}
    for page in _all(files):
        counts["pages"] += 1
        if page.redirect:
            counts["pages: redirects"] += 1
        elif page.namespace != 0:
            counts["pages: other namespaces"] += 1
        elif not page.is_article or page.text is None:
            counts["pages: without wikitext"] += 1
        else:
            counts["articles"] += 1
            featured = is_featured(page.text)
            counts["articles: featured"] += featured
            if page.title in candidates:
                raise CorpusError(
                    f"{', '.join(map(str, files))}: two pages are titled {page.title!r}; "
                    "titles must be unique: is a part of the dump there twice?"
                )
            if featured or not settings.featured_only:
                candidates[page.title] = words_at_most(page.text) >= settings.min_words
    return candidates


def _all(files: list[Path]) -> Iterator[Page]:
    for file in files:
        yield from pages(file)


def _walk(
    order: list[str], candidates: Mapping[str, bool], files: list[Path], settings: Settings
) -> tuple[list[Document], dict[str, int]]:
    """Accept articles in this order until enough are in; return them and the funnel."""
    few_words, shallow, few_sections, full = (
        f"rejected: fewer than {settings.min_words} words",
        f"rejected: headings less than {settings.min_depth} deep",
        f"rejected: fewer than {settings.min_sections} sections",
        f"rejected: bucket full at {settings.max_per_bucket}",
    )
    funnel = dict.fromkeys(
        ("candidates", few_words, shallow, few_sections, full, "not reached", "accepted"), 0
    )
    in_bucket = dict.fromkeys(BUCKETS, 0)
    accepted: list[Document] = []
    mended = featured = position = 0
    while position < len(order) and len(accepted) < settings.articles:
        stretch: list[str] = []
        wanted: set[str] = set()
        most = max(64, 4 * (settings.articles - len(accepted)))
        while position + len(stretch) < len(order) and len(wanted) < most:
            title = order[position + len(stretch)]
            stretch.append(title)
            if candidates[title]:
                wanted.add(title)
        judged = {
            page.title: _judge(page, settings, (few_words, shallow, few_sections))
            for page in _all(files) if page.title in wanted and page.is_article
        } if wanted else {}
        for title in stretch:
            if len(accepted) == settings.articles:
                break
            position += 1
            article = judged.get(title)
            if article is None:
                funnel[few_words] += 1
            elif article.document is None:
                funnel[str(article.rejected)] += 1
            elif in_bucket[article.bucket] == settings.max_per_bucket:
                funnel[full] += 1
            else:
                accepted.append(article.document)
                in_bucket[article.bucket] += 1
                featured += FEATURED in article.document.labels
                mended += article.mended
    funnel |= {
        "candidates": len(order), "not reached": len(order) - position, "accepted": len(accepted),
        **{f"accepted: {bucket}": n for bucket, n in in_bucket.items()},
        "accepted: featured": featured, "signs of unclosed markup removed": mended,
    }
    return accepted, funnel


def _judge(page: Page, settings: Settings, reasons: tuple[str, str, str]) -> _Article:
    """Flatten an article and measure it against words, depth and sections, in this order."""
    text = page.text or ""
    bucket = bucket_of(categories(text))
    labels = (bucket, FEATURED) if is_featured(text) else (bucket,)
    flat = flatten(
        document_id(page.title), page.title, text, source=page.title, version=page.revision,
        labels=labels,
    )
    document = flat.document
    few_words, shallow, few_sections = reasons
    rejected = None
    # An article of templates alone has no text to search, whatever the options say.
    if len(document.body.split()) < max(1, settings.min_words):
        rejected = few_words
    elif max((heading.level for heading in document.headings), default=0) < settings.min_depth:
        rejected = shallow
    elif len(document.headings) < settings.min_sections:
        rejected = few_sections
    return _Article(rejected, bucket, None if rejected else document, flat.mended)

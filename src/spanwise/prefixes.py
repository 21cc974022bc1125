"""What stands before the content when a chunk is embedded: a heading path, another one's, or a
context."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

SEPARATOR = " › "


def render(titles: Sequence[str]) -> str:
    """A heading path as it stands before the content: `[Title › Section › Sub]`, blank line.

    >>> render(("Guide", "Reset"))
    '[Guide › Reset]\\n\\n'
    """
    return f"[{SEPARATOR.join(titles)}]\n\n"


def before(context: str) -> str:
    """A context as it stands before the content: without brackets, blank line; "" for none.

    >>> before("From the guide's first part.")
    "From the guide's first part.\\n\\n"
    """
    return f"{context}\n\n" if context else ""


def cut(path: Sequence[str], depth: int) -> tuple[str, ...]:
    """The document's title and `depth` section levels; a shorter path stays as it is.

    >>> cut(("Guide", "Reset", "Meter"), 1)
    ('Guide', 'Reset')
    """
    return tuple(path[: depth + 1])


def placebo(
    pairs: Iterable[tuple[str, tuple[str, ...]]], seed: int
) -> tuple[dict[tuple[str, tuple[str, ...]], tuple[str, ...]], dict[str, int]]:
    """Give every (document, path) pair the path of another pair of the same depth.

    Within each depth the paths are permuted one-to-one: a seeded shuffle, then each pair that drew
    a path of its own document trades with the first one (in a seeded order) that it can trade with
    so that both hold a foreign path. A pair that finds no partner stays, counted: this happens only
    where one document holds more than half of a depth's pairs, so no permutation has fewer.

    pairs:   (doc_id, path cut to the study's depth), in any order, repeats allowed.
    returns: the assignment, and counts: pairs, `residual` same-document assignments, and
             `same_text` ones whose foreign path reads like their own.
    """
    buckets: dict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for pair in sorted(set(pairs)):
        buckets[len(pair[1])].append(pair)
    rng = np.random.default_rng(seed)
    assigned: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    counts: Counter[str] = Counter(pairs=0, residual=0, same_text=0)
    for _, bucket in sorted(buckets.items()):
        drawn = [int(i) for i in rng.permutation(len(bucket))]
        order = [int(i) for i in rng.permutation(len(bucket))]
        documents = [doc_id for doc_id, _ in bucket]
        for i in order:
            if documents[drawn[i]] != documents[i]:
                continue
            for j in order:
                if documents[drawn[j]] != documents[i] and documents[drawn[i]] != documents[j]:
                    drawn[i], drawn[j] = drawn[j], drawn[i]
                    break
        for (doc_id, path), source in zip(bucket, drawn, strict=True):
            assigned[doc_id, path] = bucket[source][1]
            counts["pairs"] += 1
            counts["residual"] += documents[source] == doc_id
            counts["same_text"] += documents[source] != doc_id and bucket[source][1] == path
    return assigned, dict(counts)


def rendered(prefix: str, content: str) -> str:
    """What is embedded: the prefix, then the content without the white space around it."""
    return prefix + content.strip()


def prefix_of(path: Sequence[str], kind: str, depth: int) -> str:
    """The prefix of one chunk under `none` or `path`."""
    return render(cut(path, depth)) if kind == "path" else ""

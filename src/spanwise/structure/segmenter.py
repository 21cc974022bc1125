"""An inducer without a language model: hierarchical segmentation on sentence vectors.

The finest sections are the partition of the paragraphs with the least squared scatter of sentence
vectors within sections, found exactly by dynamic programming (optimal partitioning, as in
change-point detection: Truong, Oudre & Vayatis, 2020). Neighbours are then merged by Ward's
criterion, which nests the coarser levels. A title is the phrase nearest to its section's centroid
among those that the section uses more than its siblings do (class-based tf-idf).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spanwise.documents.model import Document
from spanwise.structure.model import Tree, make
from spanwise.text.sentences import sentence_ends

VERSION = 1
"""Raised by hand whenever the same input would give another tree."""

_PHRASE_WORDS = 3
_CANDIDATES = 12
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_CLAUSE = re.compile(r"[^\w\s'’-]|\n\s*\n")

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Node:
    """A section in the making: a run of leaves, `first` to `stop` (exclusive), at one level.

    parent:     index of the node above it, -1 at the top.
    candidates: phrases that could be its title, best first by their tf-idf.
    """

    level: int
    first: int
    stop: int
    parent: int
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a document is cut, before anything has a title.

    starts: first paragraph of each leaf; centroids: (leaves, dim) sums of sentence vectors.
    """

    starts: tuple[int, ...]
    centroids: NDArray[np.float64]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Segmenter:
    """Cuts a document into sections of about `section_tokens` tokens, nested `levels` deep.

    encode: n texts -> (n, dim) unit vectors.
    count:  a text's number of tokens.
    """

    encode: Encode
    count: Callable[[str], int]
    levels: int
    section_tokens: int
    name: str = "segmenter"

    def induce(self, document: Document) -> Tree:
        """The induced tree; it sees body paragraphs and nothing else of the document."""
        plan = self.plan(document)
        chosen = self._titles(plan)
        ends = [*plan.starts[1:], len(document.paragraphs)]
        outline = []
        for node, title in zip(plan.nodes, chosen, strict=True):
            first = plan.starts[node.first]
            alone = node.stop - node.first == 1
            # A group of several sections is a heading above them, without text of its own.
            outline.append((title, node.level, first, ends[node.first] - 1 if alone else first - 1))
        return make(document.doc_id, document.paragraphs, outline)

    def plan(self, document: Document) -> Plan:
        """The cuts and the candidate titles of one document."""
        groups = sentences(document)
        vectors = self.encode([one for group in groups for one in group]).astype(np.float64)
        edges = np.cumsum([0, *(len(group) for group in groups)])
        sums = np.stack([vectors[a:b].sum(axis=0) for a, b in pairwise(edges)])
        counts = np.diff(edges).astype(np.float64)
        texts = [document.body[p.span.start : p.span.end] for p in document.paragraphs]
        tokens = sum(self.count(text) for text in texts)
        wanted = max(1, min(len(texts), round(tokens / self.section_tokens)))
        starts = partition(sums, counts, wanted)
        ends = [*starts[1:], len(texts)]
        centroids = np.stack([sums[a:b].sum(axis=0) for a, b in zip(starts, ends, strict=True)])
        sizes = np.array([counts[a:b].sum() for a, b in zip(starts, ends, strict=True)])
        nodes = self._nodes(merge_order(centroids, sizes), len(starts))
        used = [Counter(phrases("\n\n".join(texts[a:b])))
                for a, b in zip(starts, ends, strict=True)]
        return Plan(tuple(starts), centroids, _with_candidates(nodes, used))

    def _nodes(self, order: list[int], leaves: int) -> list[Node]:
        """The hierarchy over the leaves: about leaves^(level / levels) groups on each level."""
        sizes = sorted({math.ceil(leaves ** (n / self.levels)) for n in range(1, self.levels + 1)})
        cuts = [_cut(order, leaves, size) for size in sizes]
        nodes: list[Node] = []

        def walk(first: int, stop: int, depth: int, level: int, parent: int) -> None:
            begins = [leaf for leaf in cuts[depth] if first <= leaf < stop]
            if len(begins) == 1 and depth + 1 < len(cuts):
                walk(first, stop, depth + 1, level, parent)  # a level that divides nothing
                return
            for a, b in zip(begins, [*begins[1:], stop], strict=True):
                nodes.append(Node(level, a, b, parent))
                if b - a > 1:
                    walk(a, b, depth + 1, level + 1, len(nodes) - 1)

        walk(0, leaves, 0, 1, -1)
        return nodes

    def _titles(self, plan: Plan) -> list[str]:
        """For each node the candidate nearest to its text that no node above or before it took."""
        asked = sorted({phrase for node in plan.nodes for phrase in node.candidates})
        rows = {phrase: row for row, phrase in enumerate(asked)}
        vectors = self.encode(asked).astype(np.float64) if asked else np.zeros((0, 1))
        taken: dict[int, set[str]] = {}
        chosen: list[str] = []
        for number, node in enumerate(plan.nodes):
            above, parent = set[str](), node.parent
            while parent >= 0:
                above.add(chosen[parent].lower())
                parent = plan.nodes[parent].parent
            above |= taken.setdefault(node.parent, set())
            free = [phrase for phrase in node.candidates if phrase.lower() not in above]
            centre = plan.centroids[node.first : node.stop].sum(axis=0)
            closeness = [round(float(vectors[rows[phrase]] @ centre), 6) for phrase in free]
            best = free[int(np.argmax(closeness))] if free else f"Part {number + 1}"
            taken[node.parent].add(best.lower())
            chosen.append(best[0].upper() + best[1:])
        return chosen


def sentences(document: Document) -> list[list[str]]:
    """The sentences of each paragraph: what `encode` will be asked for."""
    groups = []
    for paragraph in document.paragraphs:
        text = document.body[paragraph.span.start : paragraph.span.end]
        ends = sentence_ends(text, paragraph.kind)
        found = [text[a:b].strip() for a, b in zip([0, *ends], ends, strict=False)]
        groups.append([sentence for sentence in found if sentence] or [text])
    return groups


def scatter(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared scatter of unit vectors around their mean: n - |sum|^2 / n. Shape as counts."""
    spread: NDArray[np.float64] = counts - (sums**2).sum(axis=-1) / counts
    return spread


def partition(sums: NDArray[np.float64], counts: NDArray[np.float64], parts: int) -> list[int]:
    """Starts of the partition of n paragraphs into `parts` runs with the least total scatter.

    sums:    (n, dim) sum of each paragraph's unit sentence vectors.
    counts:  (n,) sentences in each.
    returns: (parts,) ascending indices, the first 0. Equal partitions: the earliest cuts win.
    """
    n = len(counts)
    total = np.concatenate([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    number = np.concatenate([[0.0], np.cumsum(counts)])
    cost = np.full((n, n + 1), np.inf)
    for first in range(n):
        cost[first, first + 1 :] = scatter(total[first + 1 :] - total[first],
                                           number[first + 1 :] - number[first])
    best = cost[0].copy()  # best[j]: the least scatter of paragraphs 0..j-1 in the parts so far
    best[0] = np.inf
    back = np.zeros((parts, n + 1), dtype=np.int64)
    for part in range(1, parts):
        reach = np.round(best[:n, None] + cost, 9)  # rounded, so that equal sums compare equal
        back[part] = reach.argmin(axis=0)
        best = reach[back[part], np.arange(n + 1)]
    starts, stop = [], n
    for part in range(parts - 1, 0, -1):
        stop = int(back[part, stop])
        starts.append(stop)
    return [0, *reversed(starts)]


def merge_order(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> list[int]:
    """The order in which boundaries between neighbouring sections vanish under Ward's criterion.

    returns: (n - 1,) start indices of the section right of each boundary, first to vanish first.
    """
    starts = list(range(len(counts)))
    order = []
    while len(starts) > 1:
        merged, number = sums[:-1] + sums[1:], counts[:-1] + counts[1:]
        alone = scatter(sums, counts)
        costs = scatter(merged, number) - alone[:-1] - alone[1:]
        i = int(np.argmin(np.round(costs, 9)))  # the earlier boundary on ties
        sums = np.concatenate([sums[:i], merged[i : i + 1], sums[i + 2 :]])
        counts = np.concatenate([counts[:i], number[i : i + 1], counts[i + 2 :]])
        order.append(starts.pop(i + 1))
    return order


def _cut(order: list[int], leaves: int, groups: int) -> list[int]:
    """Starts of the `groups` groups that remain when merging stops there."""
    return sorted({0, *order[leaves - groups :]})


def phrases(text: str) -> list[str]:
    """Candidate key phrases: one to three words of one clause, no function word at either end."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    found: list[str] = []
    for clause in _CLAUSE.split(text):
        tokens = _WORD.findall(clause)
        for size in range(1, _PHRASE_WORDS + 1):
            for i in range(len(tokens) - size + 1):
                part = tokens[i : i + size]
                ends = (part[0].lower(), part[-1].lower())
                if any(w in ENGLISH_STOP_WORDS or len(w) < 3 or w.isdigit() for w in ends):
                    continue
                found.append(" ".join(part))
    return found


def _with_candidates(nodes: Sequence[Node], leaves: Sequence[Counter[str]]) -> tuple[Node, ...]:
    """Give each node the phrases it uses more than its siblings do.

    Score: tf x log(1 + siblings / siblings that use it) x sqrt(words); ties by the alphabet.
    """
    folded: list[Counter[str]] = []
    spelled: dict[str, str] = {}
    for node in nodes:
        tally: Counter[str] = Counter()
        for leaf in leaves[node.first : node.stop]:
            for phrase, tf in leaf.items():
                tally[phrase.lower()] += tf
                spelled[phrase.lower()] = min(phrase, spelled.get(phrase.lower(), phrase))
        folded.append(tally)
    made = []
    for node, tally in zip(nodes, folded, strict=True):
        siblings = [t for n, t in zip(nodes, folded, strict=True) if n.parent == node.parent]
        score = {
            phrase: tf * math.log(1 + len(siblings) / sum(phrase in t for t in siblings))
            * math.sqrt(len(phrase.split()))
            for phrase, tf in tally.items()
        }
        ranked = sorted(score, key=lambda phrase: (-round(score[phrase], 9), phrase))
        best = tuple(spelled[phrase] for phrase in ranked[:_CANDIDATES])
        made.append(Node(node.level, node.first, node.stop, node.parent, best))
    return tuple(made)

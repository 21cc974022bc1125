"""Clusters for questions whose evidence crosses documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def connected(groups: Iterable[Iterable[str]]) -> Mapping[str, str]:
    """Join documents that occur in one group, directly or through others.

    groups:  for each question, its document and those of its evidence.
    returns: document -> the least name of its component: a cluster for the sensitivity check.

    >>> connected([["b", "c"], ["c", "a"], ["d"]])
    {'a': 'a', 'b': 'a', 'c': 'a', 'd': 'd'}
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    for group in groups:
        roots = {root(name) for name in group}
        for name in roots:
            parent[name] = min(roots)
    return {name: root(name) for name in sorted(parent)}

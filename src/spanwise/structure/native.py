"""The author's own section tree, from the headings that a reader recorded."""

from __future__ import annotations

from collections.abc import Iterable

from spanwise.documents.model import Document
from spanwise.structure.model import MAX_LEVEL, Tree, make


def native_tree(document: Document) -> Tree:
    """The tree of a document's headings.

    Levels close up: a heading is one level below the nearest earlier heading of a higher rank, so
    skipped levels leave no hole; what would lie deeper than level 4 stays on level 4. Text before
    the first heading is a section without a title.
    """
    count = len(document.paragraphs)
    outline: list[tuple[str, int, int, int]] = []
    starts = [heading.paragraph for heading in document.headings] + [count]
    if starts[0] > 0:
        outline.append(("", 1, 0, starts[0] - 1))
    stack: list[int] = []
    for index, heading in enumerate(document.headings):
        while stack and stack[-1] >= heading.level:
            stack.pop()
        stack.append(heading.level)
        level = min(len(stack), MAX_LEVEL)
        outline.append((heading.title, level, heading.paragraph, starts[index + 1] - 1))
    return make(document.doc_id, document.paragraphs, outline)


def closed_up(documents: Iterable[Document]) -> dict[str, int]:
    """What `native_tree` changed of the levels that authors wrote, by the names that reports print;
    zeros are left out.

    A heading skips levels if it is written more than one level below its parent; one without a
    parent, if the document has headings of a higher rank.
    """
    skipped = deep = 0
    for document in documents:
        levels = [heading.level for heading in document.headings]
        stack: list[int] = []
        for level in levels:
            while stack and stack[-1] >= level:
                stack.pop()
            skipped += level > (stack[-1] if stack else min(levels) - 1) + 1
            stack.append(level)
            deep += len(stack) > MAX_LEVEL
    counts = {
        "headings that skip levels, closed up": skipped,
        f"headings below level {MAX_LEVEL}, kept on it": deep,
    }
    return {name: count for name, count in counts.items() if count}

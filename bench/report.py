"""The report of 5,000 questions x 11 conditions: seconds to build, MB, and what a browser needs.

    python -m bench.report [--questions 5000] [--characters 20000] [--keep FOLDER]

A seeded corpus with four questions and one without an answer for each document, three
segmentations, two embedders and BM25; its words are drawn by rank (Zipf) from 30,000 made of
syllables, which deflate leaves larger than English. Chromium opens the page from disk; a task is
what keeps it from answering (longer than 50 ms counts as one). Exit code 1 beyond 20 s, 15 MB,
200 ms of a task while loading or 500 ms until a question stands open.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests import reporting_world as world
from tests.browser import browser

from spanwise.params import Params
from spanwise.reporting import report

SECONDS, MEGABYTES, TASK_MS, OPEN_MS = 20.0, 15.0, 200.0, 500.0
SYLLABLES = tuple(a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er"))

# Tasks above 50 ms that came before the observer are buffered for it.
LONGEST = """new Promise(done => {
  const seen = new PerformanceObserver(list =>
    done(Math.max(...list.getEntries().map(e => e.duration))));
  seen.observe({ type: 'longtask', buffered: true });
  setTimeout(() => done(0), 400);
})"""
OPENING = """(async () => {
  const start = performance.now();
  location.hash = '#q/harbour/' + encodeURIComponent(%s);
  const last = () => document.querySelectorAll('dialog.view[open] .listed li').length >= 10;
  while (!last() || !document.querySelector('dialog.view .lanes .lane'))
    await new Promise(done => requestAnimationFrame(done));
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
})()"""


class Prose:
    """Paragraphs of a made language."""

    def __init__(self, characters: int) -> None:
        rng = np.random.default_rng(1)
        self.words = np.array(list(dict.fromkeys(
            "".join(rng.choice(SYLLABLES, size=int(rng.integers(1, 5)))) for _ in range(40_000)
        ))[:30_000], dtype=object)
        shares = 1 / np.arange(2, len(self.words) + 2)
        self.shares, self.characters = shares / shares.sum(), characters
        self.mean = float(self.shares @ np.array([len(word) + 1 for word in self.words]))

    def __call__(self, rng: np.random.Generator) -> str:
        size = int(self.characters / self.mean * rng.uniform(0.5, 1.5))
        words = rng.choice(self.words, size=max(20, size), p=self.shares).tolist()
        return " ".join(
            word.capitalize() if i % 14 == 0 else f"{word}." if i % 14 == 13 else word
            for i, word in enumerate(words)
        )


def study() -> Params:
    """The study of params.yaml on one corpus, at its own sizes of chunks and lists."""
    return world.settings(
        corpora={"harbour": {"reader": "markdown", "path": "data/harbour"}},
        chunking={"cap_tokens": 230, "floor_tokens": 40, "size_tolerance_tokens": 5},
    )


def measured(page: Path, ids: list[str]) -> dict[str, Any]:
    """What a browser needs for the page, in ms: to load it, for the longest task of that, to open
    questions and to filter. `loading` and `opening` are processor time of the page's main thread,
    all tasks together: what a busy machine does not lengthen."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        tab.call("Performance.enable", timeDomain="threadTicks")

        def used() -> float:
            metrics = tab.call("Performance.getMetrics")["metrics"]
            return 1000.0 * float(
                next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

        start, before = time.perf_counter(), used()
        tab.open(page.as_uri(), 1280, 900)
        load = 1000 * (time.perf_counter() - start)
        longest, loading = tab.run(LONGEST), used() - before
        opened, opening = [], []
        for name in ids:
            before = used()
            opened.append(tab.run(OPENING % repr(name)))
            opening.append(used() - before)
        start = time.perf_counter()
        tab.run("document.querySelector('dialog.view').close()")
        tab.run("""(find => { find.value = 'doc-7'; find.dispatchEvent(new Event('input')) })
            (document.querySelector('.questions input'))""")
        return {"load": load, "task": longest, "loading": loading, "opened": opened,
                "opening": opening, "filter": 1000 * (time.perf_counter() - start)}


def main() -> int:
    """Make the world, build its page, open it, print what that took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=5_000)
    parser.add_argument("--characters", type=int, default=20_000, help="of a document, on average")
    parser.add_argument("--keep", type=Path, help="folder for the world; used again if it is there")
    options = parser.parse_args()
    settings, documents = study(), max(1, options.questions // 5)
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or Path(scratch)
        if not (root / "artifacts").exists():
            start = time.perf_counter()
            world.build(root, settings, documents=documents,
                        paragraph=Prose(options.characters // 8))
            print(f"made {documents} documents in {time.perf_counter() - start:.0f} s", flush=True)
        start, cpu = time.perf_counter(), time.process_time()
        (record,) = report(root, settings)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        page = root / "reports" / "report.html"
        size = page.stat().st_size / 1e6
        text = sum(len(row["body"]) for row in record.documents.values()) / 1e6
        rng = np.random.default_rng(3)
        asked = [row["question_id"] for row in record.questions]
        ids = rng.choice(asked, size=9, replace=False).tolist()
        found = measured(page, ids)
    print(
        f"{len(record.questions)} questions, {len(set(record.scores['condition']))} conditions, "
        f"{text:.0f} million characters: built in {seconds:.1f} s ({cpu:.1f} s of processor), "
        f"{size:.1f} MB"
    )
    print(
        f"loaded in {found['load']:.0f} ms, longest task {found['task']:.0f} ms (all tasks "
        f"{found['loading']:.0f} ms of processor); a question opened in "
        f"{statistics.median(found['opened']):.0f} ms, at most {max(found['opened']):.0f} ms "
        f"({statistics.median(found['opening']):.0f} and {max(found['opening']):.0f} ms of "
        f"processor); filtered in {found['filter']:.0f} ms"
    )
    fine = (seconds < SECONDS and size < MEGABYTES and found["task"] < TASK_MS
            and max(found["opened"]) < OPEN_MS)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

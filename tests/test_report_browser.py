"""The report as a person meets it: in a real browser, from disk."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from spanwise import layout, schemas
from spanwise.measures import marginal_gains
from spanwise.reporting import report
from spanwise.reporting.gather import gather
from spanwise.spans import Span

from . import reporting_world as world
from .browser import Tab, browser, program

pytestmark = pytest.mark.system

SETTINGS = world.settings()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program()  # without a browser nothing needs to be built
    made = tmp_path_factory.mktemp("world")
    world.build(made, SETTINGS, title=world.HOSTILE)
    report(made, SETTINGS)
    return made


@pytest.fixture(scope="module")
def url(root: Path) -> str:
    return (root / "reports" / "report.html").as_uri()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(running: Tab) -> Iterator[Tab]:
    """The browser; a test fails if its page logs an error or asks for anything but itself."""
    running.events.clear()
    yield running
    for event in running.events:
        about = json.dumps(event)[:600]
        assert event["method"] != "Runtime.exceptionThrown", about
        if event["method"] == "Log.entryAdded":
            assert event["params"]["entry"]["level"] not in ("error", "warning"), about
        if event["method"] == "Network.requestWillBeSent":
            asked = event["params"]["request"]["url"]
            assert asked.startswith(("file:", "about:")), asked


def question(root: Path, question_id: str) -> dict[str, Any]:
    rows = schemas.read(
        root / layout.stage("ask", "harbour") / "questions.parquet", schemas.QUESTIONS
    )
    return dict(next(r for r in rows.to_pylist() if r["question_id"] == question_id))


def test_the_verdict_is_read_first_and_a_title_runs_no_script(tab: Tab, url: str) -> None:
    tab.open(url, 1280, 900)
    assert tab.run("document.title") == "spanwise: report"
    seen = tab.run("document.querySelector('#verdict-harbour').innerText")
    assert "What a heading path says" in seen or "Does what a heading path says matter" in seen
    assert "Holm p" in seen and "confirmatory" in seen
    assert tab.run("document.querySelector('#verdict').getBoundingClientRect().top") < 900
    assert tab.run("document.querySelectorAll('main script, main b > b').length") == 0


def test_marks_stand_where_their_figures_say(tab: Tab, url: str, root: Path) -> None:
    tab.open(url, 1280, 900)
    found = tab.run("""[...document.querySelectorAll('#forest-harbour .row.strong')].map(row => {
        const x = s => { const r = row.querySelector(s).getBoundingClientRect();
                         return (r.left + r.right) / 2; };
        return [x('.zero'), x('.mark'), row.querySelector('.value').innerText,
                row.querySelector('svg').getBoundingClientRect().width];
    })""")
    record = gather(root, "harbour", SETTINGS)
    deltas = [c["delta"] for c in record.contrasts
              if c["embedder"] == "mpnet" and c["family"] == "contrast"
              and c["measure"] == "cov_ndcg@10" and c["delta"] is not None]
    assert len(found) == len(deltas) == 3
    # One scale for all rows: a mark's distance from zero over its difference is a constant.
    pixels = [(row[1] - row[0]) / delta for row, delta in zip(found, deltas, strict=True)]
    assert pixels == pytest.approx([pixels[0]] * 3, rel=0.02) and pixels[0] > 0
    assert all(width > 200 for *_, width in found)


def test_a_question_opens_from_the_keyboard(tab: Tab, url: str, root: Path) -> None:
    tab.open(url, 1280, 900)
    tab.run("document.querySelector('#c-harbour .questions').scrollIntoView()")
    tab.run("""new Promise(done => { const look = () =>
        document.querySelector('#c-harbour tbody tr[data-id]') ? done(1) : setTimeout(look, 20);
        look(); })""")
    first = tab.run("document.querySelector('#c-harbour tr[data-id]').dataset.id")
    button = f'#c-harbour tr[data-id="{first}"] button'
    assert tab.run(f"document.querySelector('{button}').ariaExpanded") == "false"
    tab.press(button)
    assert tab.run(f"document.querySelector('{button}').ariaExpanded") == "true"
    inside = tab.run("document.querySelector('#c-harbour .inside').textContent")
    record = gather(root, "harbour", SETTINGS)
    for item in question(root, first)["evidence"]:
        text = record.documents[item["doc_id"]]["body"][item["start"] : item["end"]]
        assert text in inside
        assert f"{item['doc_id']}:{item['start']}-{item['end']}" in inside
    marked = tab.run("[...document.querySelectorAll('#c-harbour mark')].map(m => m.textContent)")
    assert len(marked) == len(question(root, first)["evidence"])
    tab.press(button)
    assert tab.run("document.querySelector('#c-harbour .inside')") is None


def test_an_address_opens_a_question_with_its_gains(tab: Tab, url: str, root: Path) -> None:
    wanted = "doc-2-q3"  # two spans of one document
    tab.open(f"{url}#q/harbour/{quote(wanted, safe='')}", 1280, 900)
    assert tab.run("[...document.querySelectorAll('tr.opened')].map(r => r.dataset.of)") == [wanted]
    record = gather(root, "harbour", SETTINGS)
    first = tab.run(f"""(d => {{ d.open = true; return new Promise(done =>
        setTimeout(() => done([...d.querySelectorAll('li code')].map(c => c.textContent)), 100)) }})
        (document.querySelector('tr[data-of="{wanted}"] .inside > details'))""")
    assert first == list(record.ranked["mpnet"].lists["A0"][wanted])


def test_the_gains_shown_are_those_of_the_measure(tab: Tab, url: str, root: Path) -> None:
    record = gather(root, "harbour", SETTINGS)
    partial = 0
    for asked in record.questions:
        wanted, home = asked["question_id"], asked["doc_id"]
        if not asked["evidence"]:
            continue
        # One page for all: each further address opens one more question.
        place = f"#q/harbour/{quote(wanted, safe='')}"
        if "harbour" not in str(tab.run("location.hash")):
            tab.open(url + place, 1280, 900)
        else:
            tab.run(f"new Promise(done => {{ addEventListener('hashchange', () => done(1), "
                    f"{{ once: true }}); location.hash = {json.dumps(place)} }})")
        shown = tab.run(f"""[...document.querySelectorAll(
            'tr[data-of="{wanted}"] .ranks tbody tr')].map(row =>
            [row.cells[0].textContent, [...row.cells].slice(2).map(c => c.textContent)])""")
        assert [name for name, _ in shown] == [n for n in SETTINGS.conditions if n != "A1"]
        gold = [Span(e["start"], e["end"]) for e in asked["evidence"]]
        for name, cells in shown:
            its = SETTINGS.conditions[name]
            cell = "bm25" if its.retrieval == "bm25" else "mpnet"
            chunks = record.chunks[its.segmentation]
            ranked = [chunks[c] for c in record.ranked[cell].lists[name][wanted]]
            own = [Span(c["start"], c["end"]) for c in ranked if c["doc_id"] == home]
            gains = iter(marginal_gains(own, gold).tolist())
            expected = [next(gains) if c["doc_id"] == home else 0.0 for c in ranked]
            told = [0.0 if text == "·" else float(text) for text in cells]
            assert told == pytest.approx(expected, abs=0.0051), (wanted, name)
            partial += sum(0 < gain < 1 / len(gold) - 0.01 for gain in expected)
    assert partial > 20  # spans that several chunks cover in part


def test_the_table_filters_and_sorts(tab: Tab, url: str) -> None:
    tab.open(f"{url}#q/harbour/doc-1-q0", 1280, 900)
    place = "document.querySelector('#c-harbour')"
    assert tab.run(f"{place}.querySelector('output').textContent") == "40 of 40 questions"
    tab.run(f"""(s => {{ s.value = 'multihop'; s.dispatchEvent(new Event('change')) }})
        ({place}.querySelector('select'))""")
    assert tab.run(f"{place}.querySelector('output').textContent") == "8 of 8 questions"
    tab.run(f"""(s => {{ s.value = 'doc-3'; s.dispatchEvent(new Event('input')) }})
        ({place}.querySelector('input'))""")
    ids = f"[...{place}.querySelectorAll('tr[data-id]')].map(r => r.dataset.id)"
    assert tab.run(ids) == ["doc-3-q3"]
    tab.run(f"""(s => {{ s.value = ''; s.dispatchEvent(new Event('input')) }})
        ({place}.querySelector('input'))""")
    column = "A3"
    heads = f"[...{place}.querySelectorAll('.asked > thead th')]"
    at = tab.run(f"{heads}.findIndex(h => h.textContent.trim() === '{column}')")
    for order in ("descending", "ascending"):
        tab.press(f"#c-harbour .asked > thead th:nth-child({at + 1}) button")
        assert tab.run(f"{heads}[{at}].ariaSort") == order
        values = [float(v) for v in tab.run(
            f"[...{place}.querySelectorAll('tr[data-id]')].map(r => r.cells[{at}].textContent)")]
        assert values == sorted(values, reverse=order == "descending")
        assert len(set(values)) > 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_reads_and_is_not_blank(
    tab: Tab, url: str, tmp_path: Path, width: int, dark: bool
) -> None:
    from PIL import Image

    tab.open(f"{url}#q/harbour/doc-0-q1", width, 1000, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") == width
    faint = tab.run(CONTRAST)
    assert faint == [], faint
    for top in ("#verdict", "#forest-harbour", "tr.opened"):
        tab.run(f"document.querySelector('{top}').scrollIntoView()")
        taken = tab.picture(tmp_path / "page.png")
        image = Image.open(io.BytesIO(taken.read_bytes())).convert("L")
        assert image.size == (width, 1000)
        shades = image.histogram()
        paper = max(range(256), key=shades.__getitem__)
        assert (paper < 64) if dark else (paper > 224)
        ink = 1 - shades[paper] / (width * 1000)
        assert 0.02 < ink < 0.9, f"{top}: {ink:.3f} of the picture is not paper"


def test_questions_are_drawn_for_paper(tab: Tab, url: str) -> None:
    tab.open(url, 1280, 900)
    rows = "document.querySelectorAll('tr[data-id]').length"
    assert tab.run(rows) == 0  # none has been scrolled to
    tab.call("Page.printToPDF")
    assert tab.run(rows) == 40 * len(SETTINGS.corpora)


def test_without_scripts_everything_but_the_questions_is_there(tab: Tab, url: str) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(url, 1280, 900)
        root_node = tab.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        html = tab.call("DOM.getOuterHTML", nodeId=root_node)["outerHTML"]
        assert "Holm p" in html and "spanwise show QUESTION_ID" in html
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


# Every text against the nearest opaque ground behind it: WCAG asks for 4.5, and 3 for large text.
CONTRAST = """(() => {
  const parse = text => {
    const found = text.match(/[\\d.]+/g).map(Number);
    const unit = text.startsWith('color(') ? 1 : 255;
    return { c: found.slice(0, 3).map(v => v / unit), a: found.length > 3 ? found[3] : 1 };
  };
  const light = c => { const [r, g, b] = c.map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const { c, a } = parse(getComputedStyle(at).backgroundColor);
      if (a > 0) layers.push([c, a]);
      if (a >= 1) break;
    }
    return layers.reverse().reduce((under, [c, a]) => c.map((v, i) => v * a + under[i] * (1 - a)),
      [1, 1, 1]);
  };
  const out = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('script, style, noscript, svg') || !e.checkVisibility()) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(style.color).c), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) out.push([e.className || e.tagName, e.textContent.slice(0, 40),
      Math.round(ratio * 100) / 100]);
  }
  return out.slice(0, 12);
})()"""

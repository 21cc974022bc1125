"""The report as a person meets it: in a real browser, from disk."""

from __future__ import annotations

import io
import json
import shutil
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


READY = "document.querySelector('dialog.view[open] .listed li')"
HEADS = "[...document.querySelectorAll('.listed li small')].every(small => small.textContent)"


def settle(tab: Tab) -> None:
    """Two frames: what a key or an address started has happened."""
    tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))")


def show(tab: Tab, url: str, question_id: str, width: int = 1280, *, dark: bool = False) -> None:
    tab.open(f"{url}#q/harbour/{quote(question_id, safe='')}", width, 1000, dark=dark)
    tab.wait(READY)


def listed(tab: Tab) -> list[str]:
    """Ids of the rows of the first corpus, from top to bottom."""
    found = tab.run("""(() => {
        document.querySelector('#c-harbour .questions').scrollIntoView();
        return new Promise(done => { const look = () => { const rows = [...document
            .querySelectorAll('#c-harbour tr[data-id]')].map(r => r.dataset.id);
            rows.length ? done(rows) : setTimeout(look, 20) }; look(); }) })()""")
    return [str(i) for i in found]


def heading(tab: Tab) -> str:
    """Which question stands open, by the line under its heading; empty where none does."""
    settle(tab)
    return str(tab.run("""document.querySelector('dialog.view[open]') ?
        document.querySelector('dialog.view .asks p').textContent.split(' · ')[0] : ''"""))


def test_a_question_opens_steps_and_closes_from_the_keyboard(tab: Tab, url: str) -> None:
    tab.open(url, 1280, 900)
    first, second, third = listed(tab)[:3]
    tab.run(f"""document.querySelector('#c-harbour tr[data-id="{first}"] a').focus()""")
    tab.key("j")
    tab.key("ArrowUp")
    assert tab.run("document.activeElement.closest('tr').dataset.id") == first
    tab.key("Enter")
    assert heading(tab) == first
    assert tab.run("document.activeElement.id") == "asked"  # where a screen reader goes on
    tab.key("j")
    assert heading(tab) == second
    tab.key("ArrowRight")
    assert heading(tab) == third
    tab.key("k")
    assert heading(tab) == second
    assert tab.run("decodeURIComponent(location.hash)") == f"#q/harbour/{second}"
    # Everything inside is reached by Tab, and what has the focus shows it.
    tab.wait(READY)
    reached = []
    for _ in range(40):
        tab.key("Tab")
        name, outline = tab.run("""(e => [e.tagName + '.' + (e.type || e.className),
            getComputedStyle(e).outlineStyle])(document.activeElement)""")
        reached.append(name)
        assert outline != "none" or name.startswith("BODY"), name
    assert {"BUTTON.button", "INPUT.radio", "INPUT.checkbox", "DIV.scroll"} <= set(reached)
    tab.key("Escape")
    assert heading(tab) == ""
    assert "#q/" not in tab.run("location.hash")


def test_back_and_forward_close_and_open_a_question(tab: Tab, url: str) -> None:
    tab.open(url, 1280, 900)
    first = listed(tab)[0]
    tab.press(f'#c-harbour tr[data-id="{first}"] a')
    assert heading(tab) == first
    tab.run("history.back()")
    tab.wait("!document.querySelector('dialog.view[open]')")
    tab.run("history.forward()")
    tab.wait("document.querySelector('dialog.view[open]')")
    assert heading(tab) == first
    tab.key("Escape")
    tab.wait("!location.hash.startsWith('#q/')")


SAID = "document.querySelector('dialog.view[open] h2')?.textContent"


def test_an_address_that_leads_nowhere_says_so(tab: Tab, url: str) -> None:
    tab.open(f"{url}#q/harbour/doc-0-q9", 1280, 900)
    tab.wait(f"{SAID} === 'There is no question doc-0-q9 in harbour'")
    assert tab.run("document.activeElement.id") == "asked"  # a screen reader begins there
    assert tab.run("[...document.querySelectorAll('dialog .bar button')].map(b => b.disabled)") == [
        True, True, False]
    near = tab.run("""[...document.querySelectorAll('.missing li small')].map(
        small => small.textContent)""")
    assert near and all(name.startswith("doc-0-") for name in near)
    tab.key("j")  # there is no next one
    tab.call("Emulation.setDeviceMetricsOverride", width=800, height=900, deviceScaleFactor=1,
             mobile=False)
    settle(tab)
    tab.press(".missing li a")
    tab.wait(READY)
    assert heading(tab) == near[0]
    tab.run("location.hash = '#q/harbour/zzzz'")
    tab.wait(f"{SAID} === 'There is no question zzzz in harbour'")
    assert tab.run("document.querySelector('.missing h3').textContent") == "First in the list"
    assert tab.run("document.querySelectorAll('.missing li').length") == 5
    tab.press(".missing p a")
    tab.wait("!document.querySelector('dialog.view[open]')")
    assert tab.run("location.hash") == "#questions-harbour"
    for address, said in (("#q/nowhere/x", "There is no corpus nowhere on this page"),
                          ("#q/harbour", "The address names no question of harbour"),
                          ("#q/harbour/%E0%A4%A", "There is no question %E0%A4%A in harbour")):
        tab.open(url + address, 1280, 900)
        tab.wait(f"{SAID} === {json.dumps(said)}")
        tab.key("Escape")
        tab.wait("!document.querySelector('dialog.view[open]')")
        assert tab.run("location.hash.startsWith('#q/')") is False


def test_a_table_that_scrolls_sideways_says_so(tab: Tab, url: str) -> None:
    show(tab, url, "doc-0-q1", width=360)
    hint = """(frame => [frame.classList.contains('wide'), frame.classList.contains('end'),
        getComputedStyle(frame, '::before').content])(document.querySelector('dialog .scroll'))"""
    tab.wait("document.querySelector('dialog .scroll.wide')")
    assert tab.run(hint) == [True, False, '"scrolls sideways →"']
    tab.run("document.querySelector('dialog .scroll').scrollLeft = 9999")
    tab.wait("document.querySelector('dialog .scroll.end')")
    assert tab.run(hint) == [True, True, '"← scrolls sideways"']
    show(tab, url, "doc-0-q1")
    settle(tab)
    assert tab.run(hint)[0] is False
    # Nothing scrolls without the hint, in folded tables either.
    tab.open(url, 360, 900)
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    settle(tab)
    frames = tab.run("""[...document.querySelectorAll('main .scroll')].map(frame =>
        [frame.scrollWidth > frame.clientWidth + 1, frame.classList.contains('wide')])""")
    assert len(frames) > 10 and any(over for over, _ in frames)
    assert all(over == told for over, told in frames)


def test_evidence_is_marked_where_it_stands(tab: Tab, url: str, root: Path) -> None:
    record = gather(root, "harbour", SETTINGS)
    tab.open(url, 1280, 900)
    astral = 0
    for wanted in ("doc-0-q1", "doc-0-q3", "doc-2-q2", "doc-2-q3"):
        asked = question(root, wanted)
        open_at(tab, wanted)
        body = record.documents[asked["doc_id"]]["body"]
        assert tab.run("document.querySelector('.sheet .text').textContent") == body
        marked: dict[str, str] = {}
        for n, text in tab.run("""[...document.querySelectorAll('.sheet .text mark')].map(
            mark => [mark.dataset.n, mark.textContent])"""):
            marked[n] = marked.get(n, "") + text
        assert [marked[str(i)] for i in range(len(asked["evidence"]))] == [
            body[e["start"] : e["end"]] for e in asked["evidence"]]
        astral += any(ord(c) > 0xFFFF for c in body[: asked["evidence"][-1]["start"]])
    assert astral >= 2  # offsets behind characters that JavaScript counts twice


def test_edges_stand_where_the_chunks_begin(tab: Tab, url: str, root: Path) -> None:
    record = gather(root, "harbour", SETTINGS)
    show(tab, url, "doc-0-q1")
    body = record.documents["doc-0"]["body"]
    for name in ("fixed", "induced", "native"):
        # The text before each edge, as it stands in the page.
        before = tab.run(f"""[...document.querySelectorAll('.edge.{name}[data-what=begins]')].map(
            edge => {{ const range = document.createRange();
                range.setStart(document.querySelector('.sheet .text'), 0); range.setEndBefore(edge);
                return [...range.toString()].length }})""")
        chunks = sorted(c["start"] for c in record.chunks[name].values() if c["doc_id"] == "doc-0")
        assert before == chunks and len(chunks) > 2 and max(chunks) < len(body)
        # A lane beside the text begins at the height of each edge.
        gaps = tab.run(f"""(() => {{
            const tops = what => [...document.querySelectorAll(what)].map(
                e => e.getBoundingClientRect().top);
            const lanes = tops('.lanes .lane.{name}');
            return tops('.edge.{name}[data-what=begins]').map((y, i) => Math.abs(y - lanes[i]));
        }})()""")
        assert len(gaps) == len(chunks) and max(gaps) < 1.5
    # They differ without colour, and a control takes each away.
    styles = tab.run("""['fixed', 'induced', 'native'].map(name => getComputedStyle(
        document.querySelector('.edge.' + name)).borderLeftStyle)""")
    assert len(set(styles)) == 3
    tab.press_space(".edges input[value=induced]")
    assert tab.run("""[getComputedStyle(document.querySelector('.edge.induced')).display,
        document.querySelectorAll('.lane.induced').length,
        document.querySelectorAll('.lanes .lane.native').length > 0]""") == ["none", 0, True]
    tab.press_space(".edges input[value=induced]")


def test_ranks_stand_beside_the_text_and_in_the_list(tab: Tab, url: str, root: Path) -> None:
    record = gather(root, "harbour", SETTINGS)
    show(tab, url, "doc-2-q3")
    for condition, segmentation in (("A0", "fixed"), ("G3", "native")):
        tab.run(f"document.querySelector('input[value=\"{condition}\"]').click()")
        tab.wait(HEADS)
        ranked = list(record.ranked["mpnet", "none"].lists[condition]["doc-2-q3"])
        assert tab.run(
            "[...document.querySelectorAll('.listed code')].map(c => c.textContent)") == ranked
        for chunk_id, head in zip(ranked, tab.run(
            "[...document.querySelectorAll('.listed small')].map(c => c.textContent)"
        ), strict=True):
            chunk = record.chunks[segmentation][chunk_id]
            body = record.documents[chunk["doc_id"]]["body"]
            text = " ".join(body[chunk["start"] : chunk["end"]].split())
            assert text.startswith(head.rstrip("…")) and len(head) > 20
        beside = tab.run("[...document.querySelectorAll('.lanes .ranked')].map(l => l.title)")
        mine = sorted(
            (c["start"], c["chunk_id"]) for c in record.chunks[segmentation].values()
            if c["doc_id"] == "doc-2")
        assert sorted(beside) == sorted(
            f"{segmentation} chunk {n + 1}, rank {ranked.index(chunk_id) + 1}"
            for n, (_, chunk_id) in enumerate(mine) if chunk_id in ranked)


def open_at(tab: Tab, question_id: str) -> None:
    """Go to a question's address in the page that is open."""
    place = f"#q/harbour/{quote(question_id, safe='')}"
    tab.run(f"location.hash = {json.dumps(place)}")
    tab.wait(f"""view.question?.id === {json.dumps(question_id)} &&
        document.querySelector('dialog.view[open] .ranks')""")


def test_the_gains_shown_are_those_of_the_measure(tab: Tab, url: str, root: Path) -> None:
    record = gather(root, "harbour", SETTINGS)
    tab.open(url, 1280, 900)
    partial = 0
    for asked in record.questions:
        wanted, home = asked["question_id"], asked["doc_id"]
        if not asked["evidence"]:
            continue
        open_at(tab, wanted)
        shown = tab.run("""[...document.querySelectorAll('.ranks tbody tr')].map(row =>
            [row.cells[0].textContent, [...row.cells].slice(2).map(c => c.textContent)])""")
        assert [name for name, _ in shown] == [n for n in SETTINGS.conditions if n != "A1"]
        gold = [Span(e["start"], e["end"]) for e in asked["evidence"]]
        for name, cells in shown:
            its = SETTINGS.conditions[name]
            cell = "bm25" if its.retrieval == "bm25" else "mpnet"
            chunks = record.chunks[its.segmentation]
            ranked = [chunks[c] for c in record.ranked[cell, "none"].lists[name][wanted]]
            own = [Span(c["start"], c["end"]) for c in ranked if c["doc_id"] == home]
            gains = iter(marginal_gains(own, gold).tolist())
            expected = [next(gains) if c["doc_id"] == home else 0.0 for c in ranked]
            told = [0.0 if text in "·○" else float(text) for text in cells]
            assert told == pytest.approx(expected, abs=0.0051), (wanted, name)
            assert ["·" not in text for text in cells] == [c["doc_id"] == home for c in ranked]
            partial += sum(0 < gain < 1 / len(gold) - 0.01 for gain in expected)
    assert partial > 20  # spans that several chunks cover in part


def test_ids_are_shown_as_people_write_them(tab: Tab, root: Path, tmp_path: Path) -> None:
    made = tmp_path / "report.html"
    html = (root / "reports" / "report.html").read_text(encoding="utf-8")
    made.write_text(html.replace('["doc-2",', '["d%C3%B6c%20zwei",', 1), encoding="utf-8")
    show(tab, made.as_uri(), "doc-2-q0")
    label, title = tab.run("""(() => { const its = document.querySelector('.spans button');
        return [its.textContent, its.title]; })()""")
    assert label.startswith("döc zwei:") and title == label.replace("döc zwei", "d%C3%B6c%20zwei")
    ids = tab.run(
        "[...document.querySelectorAll('.listed code')].map(c => [c.textContent, c.title])")
    mine = [(text, raw) for text, raw in ids if raw.startswith("d%C3")]
    assert mine and all(text.startswith("döc zwei:") for text, _ in mine)
    for raw in ("100%", "%FF", "a%1B%5B31m", "a%0Ab", "a%E2%80%AEb"):
        assert tab.run(f"readable({json.dumps(raw)})") == raw


def test_segmentations_of_other_packages_differ_in_look_and_letter(tab: Tab, url: str) -> None:
    tab.open(url, 1280, 900)
    looks = tab.run("""(() => {
        const names = ['fixed', 'induced', 'native', 'langchain', 'lcover', 'llama'];
        const places = new Places(Object.fromEntries(names.map(name => [name, []])));
        return names.map(name => { const made = el('span', { class: `edge ${places.look(name)}` });
            document.body.append(made); const its = getComputedStyle(made);
            return [`${its.borderLeftStyle} ${its.borderLeftColor}`, places.letter(name)]; });
    })()""")
    assert len({look for look, _ in looks}) == len({letter for _, letter in looks}) == 6


def test_a_hostile_text_stays_a_text_in_the_question_view(tab: Tab, url: str) -> None:
    show(tab, url, "doc-0-q1")
    tab.wait(HEADS)
    asked = tab.run("document.querySelector('dialog.view h2').textContent")
    assert asked == f"Why {world.HOSTILE}?"
    assert world.HOSTILE in tab.run("document.querySelector('.sheet .text').textContent")
    assert tab.run("document.title") == "spanwise: report"
    made = "document.querySelectorAll('dialog script, dialog img, dialog .text b').length"
    assert tab.run(made) == 0


def test_a_text_that_the_page_does_not_carry_is_missed_aloud(
    tab: Tab, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.reporting.questions.reach", lambda _: 40)
    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    report(tmp_path, SETTINGS)
    show(tab, (tmp_path / "reports" / "report.html").as_uri(), "doc-2-q3")
    (body,) = [row["body"] for row in gather(tmp_path, "harbour", SETTINGS).documents.values()
               if row["doc_id"] == "doc-2"]
    shown = tab.run("""[...document.querySelectorAll('.sheet .prose-text')].map(
        part => part.textContent)""")
    left = [int(text.split()[0].replace(",", "")) for text in tab.run(
        "[...document.querySelectorAll('.sheet .gap')].map(gap => gap.textContent)")]
    assert left and len(shown) == 2 and all(part in body for part in shown)
    assert sum(left) + sum(map(len, shown)) == len(body)
    marked = tab.run("""[...document.querySelectorAll('.sheet mark')].map(
        mark => mark.textContent)""")
    assert "".join(marked) == "".join(
        body[e["start"] : e["end"]] for e in question(root, "doc-2-q3")["evidence"])


def test_tables_copy_as_tabs(tab: Tab, url: str, root: Path) -> None:
    tab.open(url, 1280, 900)
    tab.call("Browser.grantPermissions",
             permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
    buttons, tables = (tab.run(f"document.querySelectorAll('main > section {what}').length")
                       for what in (".copy", ".scroll > table"))
    assert buttons >= tables > 5
    means = "#c-harbour table.means"
    tab.run(f"document.querySelector('{means}').closest('details').open = true")
    for old in (False, True):  # with and without the clipboard of today
        tab.run("window.kept ??= navigator.clipboard; kept.writeText('nothing')")
        tab.run(f"""Object.defineProperty(navigator, 'clipboard',
            {{ value: {'undefined' if old else 'kept'}, configurable: true }})""")
        tab.run(f"""(b => {{ b.id = 'copying'; b.textContent = 'Copy table' }})
            (document.querySelector('{means}').parentElement.nextElementSibling)""")
        tab.press("#copying")
        tab.wait("document.querySelector('#copying').textContent === 'Copied'")
        lines = [line.split("\t") for line in tab.run("kept.readText()").split("\n")]
        assert len({len(line) for line in lines}) == 1
        record = gather(root, "harbour", SETTINGS)
        row = next(line for line in lines if line[0].startswith("G3 "))
        told = record.means["mpnet", "none", "G3", "primary", "cov_ndcg@10"]["mean"]
        assert row[1] == f"{told:.3f}"
        tab.wait("document.querySelector('output.unseen').textContent.startsWith('Copied')")
    # A selection inside a table: signs are those that a spreadsheet reads.
    tab.run("""(table => { table.closest('details').open = true; const range =
        document.createRange(); range.selectNodeContents(table.tBodies[0]);
        getSelection().removeAllRanges(); getSelection().addRange(range); })
        (document.querySelector('#c-harbour details table'))""")
    tab.run("document.execCommand('copy')")
    lines = [line.split("\t") for line in tab.run("kept.readText()").split("\n")]
    assert len(lines) > 3 and len({len(line) for line in lines}) == 1
    assert any(cell.startswith("-0.") for line in lines for cell in line)
    assert not any("−0" in cell for line in lines for cell in line)


def test_the_table_filters_and_sorts(tab: Tab, url: str) -> None:
    tab.open(url, 1280, 900)
    listed(tab)
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
    values = f"[...{place}.querySelectorAll('tr[data-id]')].map(r => r.cells[AT].textContent)"
    apart = [float(v) for v in tab.run(values.replace("AT", "2"))[:30]]
    assert apart == sorted(apart, reverse=True) and len(set(apart)) > 3
    at = tab.run(f"{heads}.findIndex(h => h.textContent.trim() === '{column}')")
    for order in ("descending", "ascending"):
        tab.press(f"#c-harbour .asked > thead th:nth-child({at + 1}) button")
        assert tab.run(f"{heads}[{at}].ariaSort") == order
        found = [float(v) for v in tab.run(values.replace("AT", str(at))) if v != "–"]
        assert found == sorted(found, reverse=order == "descending") and len(set(found)) > 1
    # Any pair of conditions becomes a column, and the order.
    for i, name in enumerate(("G3", "P")):
        side = f"{place}.querySelectorAll('.pair select')[{i}]"
        tab.run(f"""(s => {{ s.value = [...s.options].find(o => o.textContent === '{name}').value;
            s.dispatchEvent(new Event('change')) }})({side})""")
    assert tab.run(f"{heads}.at(-1).textContent") == "G3 − P"
    at = tab.run(f"{heads}.length - 1")
    told = [v.replace("−", "-") for v in tab.run(values.replace("AT", str(at)))]
    found = [float(v) for v in told if v != "–"]
    assert found == sorted(found, reverse=True) and found[0] > 0 > found[-1]
    assert told[len(found):] == ["–"] * (len(told) - len(found))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_reads_and_is_not_blank(
    tab: Tab, url: str, tmp_path: Path, width: int, dark: bool
) -> None:
    from PIL import Image

    tab.open(url, width, 1000, dark=dark)
    listed(tab)
    for top in ("#verdict", "#forest-harbour", "#questions-harbour", "dialog.view"):
        if top == "dialog.view":
            open_at(tab, "doc-0-q1")
            tab.wait(HEADS)
            assert tab.run("document.querySelector('dialog.view').scrollWidth") == width
        else:
            tab.run(f"document.querySelector('{top}').scrollIntoView()")
        assert tab.run("document.documentElement.scrollWidth") == width
        faint = tab.run(CONTRAST)
        assert faint == [], faint
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

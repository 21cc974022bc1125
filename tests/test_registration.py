"""Confirmatory only while everything equals what was registered first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import params
from spanwise.errors import RegistrationError
from spanwise.registration import door, load, protocol, register, standing
from spanwise.registration.entries import digest, edited

from .conftest import ROOT

DIGESTS = {"documents": "d1", "questions": "q1"}


def settings(**changes: object) -> params.Params:
    mapping = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for place, value in changes.items():
        part, *inner, last = place.split("__") if "__" in place else (None, place)
        target = mapping if part is None else mapping[part]
        for name in inner:
            target = target[name]
        target[last] = value
    return params.from_mapping(mapping)


def old(corpus: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """An entry as it was written before there were digests and rules of the statistics."""
    made = protocol(settings(), {"handbook": DIGESTS})
    made["corpora"] = {corpus: made["corpora"]["handbook"]}
    made["corpora"][corpus] |= DIGESTS if corpus == "handbook" else of(corpus)
    for key in ("statistics", "exploratory", *without):
        del made[key]
    return {"reason": "before", "parent_commit": "abc", "protocol": made}


def of(corpus: str) -> dict[str, str]:
    """Digests by which no corpus is taken for another."""
    return {"documents": f"d-{corpus}", "questions": f"q-{corpus}"}


def write(path: Path, *entries: dict[str, Any]) -> None:
    path.write_text(json.dumps({"entries": list(entries)}, indent=2) + "\n", encoding="utf-8")


def change(path: Path, number: int, place: str, value: object) -> None:
    """Edit an entry by hand."""
    entries = json.loads(path.read_text(encoding="utf-8"))["entries"]
    target = entries[number - 1]
    *inner, last = place.split(".")
    for name in inner:
        target = target[name]
    target[last] = value
    write(path, *entries)


def test_nothing_registered_is_exploratory(tmp_path: Path) -> None:
    found = standing(settings(), "handbook", DIGESTS, tmp_path / "r.json")
    assert found.word == "exploratory" and "nothing is registered" in found.differences[0]


def test_what_equals_the_registration_is_confirmatory_and_each_difference_is_listed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    found = standing(settings(), "handbook", DIGESTS, path)
    assert (found.word, found.differences, found.parent_commit) == ("confirmatory", (), "abc")
    other = standing(settings(chunking__cap_tokens=400), "handbook", DIGESTS, path)
    assert other.word == "exploratory"
    assert other.differences == ("chunking.cap_tokens: registered 350, ran 400",)
    changed = standing(settings(), "handbook", {**DIGESTS, "questions": "q2"}, path)
    assert changed.differences == (
        "questions changed since registration (digest q1, now q2)",
    )


def test_a_new_arm_outside_the_contrasts_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    arm = {"segmentation": "native", "prefix": "path", "depth": 1, "retrieval": "flat"}
    mapping = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    mapping["conditions"]["G3-d1"] = arm
    assert standing(params.from_mapping(mapping), "handbook", DIGESTS, path).word == "confirmatory"


def test_amendments_need_a_reason_and_earlier_entries_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    with pytest.raises(RegistrationError, match="registered already"):
        register(settings(), {"handbook": DIGESTS}, "def", "again", path)
    with pytest.raises(RegistrationError, match="needs a reason"):
        register(settings(inference__seed=1), {"handbook": DIGESTS}, "def", " ", path)
    register(settings(inference__seed=1), {"handbook": DIGESTS}, "def", "another seed", path)
    assert [entry["parent_commit"] for entry in load(path)] == ["abc", "def"]
    # What an amendment changes for a corpus that was registered before stays a deviation.
    found = standing(settings(inference__seed=1), "handbook", DIGESTS, path)
    assert found.differences == ("inference.seed: registered 20260710, ran 1",)


def test_another_encoder_behind_the_same_name_is_a_deviation(tmp_path: Path) -> None:
    """Tokens are counted and trees induced with minilm: its settings move every chunk."""
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    other = settings(embedders__minilm__model="another/model")
    found = standing(other, "handbook", DIGESTS, path)
    assert found.differences == (
        "encoders.minilm.model: registered sentence-transformers/all-MiniLM-L6-v2, "
        "ran another/model",
    )
    # An entry of before names it alone: that much still has to hold, and no more can be held.
    write(path, old("handbook", without=("encoders",)))
    assert standing(settings(), "handbook", DIGESTS, path).word == "confirmatory"
    named = standing(settings(tokens__tokenizer="words"), "handbook", DIGESTS, path)
    assert named.differences == ("tokens.tokenizer: registered minilm, ran words",)


@pytest.mark.parametrize(("text", "part"), [
    (b"[]", "one key, `entries`"), (b"{", "no JSON"), (b"\xff", "UTF-8"),
    (b'{"entries": {}}', "no list"), (b'{"entries": [], "note": 1}', "one key, `entries`"),
    (b'{"entries": [], "entries": []}', "'entries' stands twice"),
    (b'{"entries": [NaN]}', "NaN is no number"), (b"[" * 100_000, "no JSON"),
    (b'{"entries": [{}]}', "entry 1: lacks reason, parent_commit, protocol"),
])
def test_a_file_that_is_no_registration_is_refused(tmp_path: Path, text: bytes, part: str) -> None:
    (tmp_path / "r.json").write_bytes(text)
    with pytest.raises(RegistrationError, match="git checkout") as said:
        load(tmp_path / "r.json")
    assert part in str(said.value) and str(tmp_path / "r.json") in str(said.value)


@pytest.mark.parametrize(("place", "value", "part"), [
    ("resaon", "", "unknown key 'resaon'"), ("reason", 1, "reason is no text"),
    ("sha256", 1, "sha256 is no text"), ("too_late", "handbook", "too_late is no list"),
    ("previous_sha256", 1, "previous_sha256 is no text"),
    ("weights", {"model.safetensors": 1}, "weights is no mapping of files to digests"),
    ("earlier_sha256", [1], "earlier_sha256 is no list"),
    ("protocol", [], "protocol is no mapping"), ("protocol.corpora", {}, "names no corpora"),
    ("protocol.corpora", 1, "corpora is no mapping"),
    ("protocol.corpora.handbook", "here", "corpora.handbook is no mapping"),
    ("protocol.inference", 5, "protocol.inference is no mapping"),
    ("protocol.measures", "mrr", "protocol.measures is no list"),
])
def test_an_entry_that_cannot_be_used_is_named_with_its_key(
    tmp_path: Path, place: str, value: object, part: str
) -> None:
    path = tmp_path / "r.json"
    write(path, old("handbook"), old("notes"))
    change(path, 2, place.replace("corpora.handbook", "corpora.notes"), value)
    with pytest.raises(RegistrationError, match="git checkout") as said:
        load(path)
    assert f"entry 2: {part}".replace("corpora.handbook", "corpora.notes").split(": ")[0] in str(
        said.value
    )
    assert part.replace("corpora.handbook", "corpora.notes") in str(said.value)


def test_what_the_projects_own_params_changed_since_registration_is_listed() -> None:
    (entry, *_), ran = load(ROOT / "registration.json"), params.load(ROOT / "params.yaml")
    found = standing(
        ran, "handbook",
        {k: entry["protocol"]["corpora"]["handbook"][k] for k in ("documents", "questions")},
        ROOT / "registration.json",
    )
    assert found.word == "exploratory"
    assert found.differences == (
        "corpora.handbook.context: ran, not registered",
        "corpora.handbook.contexts: registered false, ran true",
        "corpora.handbook.inducer: registered segmenter, ran hybrid",
        "corpora.handbook.llm: ran, not registered",
    )


def test_a_language_model_that_a_corpus_does_not_ask_is_no_part_of_its_protocol(
    tmp_path: Path,
) -> None:
    path, plain = tmp_path / "r.json", {"corpora__handbook__contexts": False,
                                        "corpora__handbook__inducer": "segmenter"}
    register(settings(**plain), {"handbook": DIGESTS}, "abc", "", path)
    other = settings(**plain, llm__model="another", prefixes__context__most_tokens=90)
    assert standing(other, "handbook", DIGESTS, path).differences == ()
    asked = standing(settings(**plain | {"corpora__handbook__contexts": True}), "handbook", DIGESTS,
                     path)
    assert len(asked.differences) == 3


def test_a_registration_that_came_after_the_strong_embedder_confirms_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path, too_late=["handbook"])
    found = standing(settings(), "handbook", DIGESTS, path)
    assert found.word == "exploratory"
    assert found.differences == (
        "handbook was registered after the strong embedder had run on it",
    )


# ---------------------------------------------------------------- a corpus under other names


def called(name: str, **changes: object) -> params.Params:
    """The project's settings with its one corpus under another name."""
    mapping = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    mapping["corpora"] = {name: mapping["corpora"]["handbook"] | {"path": f"data/{name}"}}
    mapping["inference"] |= changes
    return params.from_mapping(mapping)


@pytest.mark.parametrize("digests", [
    DIGESTS, {"documents": "d1", "questions": "other"}, {"documents": "other", "questions": "q1"},
])
def test_a_new_name_makes_no_new_corpus(tmp_path: Path, digests: dict[str, str]) -> None:
    path = tmp_path / "r.json"
    register(settings(inference__seed=1), {"handbook": DIGESTS}, "abc", "", path)
    register(called("new"), {"new": digests}, "def", "once more", path)
    found = standing(called("new"), "new", digests, path)
    assert found.word == "exploratory" and found.parent_commit == "abc"
    assert "inference.seed: registered 1, ran 20260710" in found.differences
    # The name alone is no deviation, nor is the folder that follows from it.
    same = standing(called("new", seed=1), "new", digests, path)
    changed = [part for part in DIGESTS if digests[part] != DIGESTS[part]]
    assert [why.split()[0] for why in same.differences] == changed


def test_a_new_name_for_what_an_amendment_changed_leads_back_to_the_first_entry(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    register(settings(), {"handbook": of("later")}, "def", "documents mended", path)
    found = standing(called("new"), "new", of("later"), path)
    assert found.word == "exploratory" and found.parent_commit == "abc"
    # A corpus that shares nothing is its own.
    register(called("letters"), {"letters": of("letters")}, "ghi", "more", path)
    assert standing(called("letters"), "letters", of("letters"), path).parent_commit == "ghi"


# ---------------------------------------------------------------- the rules of the statistics


def test_rules_are_registered_and_another_rule_is_a_deviation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    rules = load(path)[0]["protocol"]["statistics"]
    assert rules["significance"] == 0.05 and rules["family"] == {"method": "holm", "m": 4}
    assert rules["interval"]["few_documents"] == 30 and rules["equivalence"]["margin"] == 0.01
    assert (rules["power"]["alpha"], rules["power"]["power"]) == (0.0125, 0.8)
    # An entry with the rule says which interval few documents get.
    assert standing(settings(), "handbook", DIGESTS, path, documents=5).word == "confirmatory"
    monkeypatch.setattr("spanwise.registration.fixed.FEW", 20)
    assert standing(settings(), "handbook", DIGESTS, path).differences == (
        "statistics.interval.few_documents: registered 30, ran 20",
    )


@pytest.mark.parametrize(("documents", "differs"), [
    (None, False), (1, False), (2, True), (29, True), (30, False),
])
def test_an_entry_without_rules_differs_only_where_the_rule_changes_the_interval(
    tmp_path: Path, documents: int | None, differs: bool
) -> None:
    path = tmp_path / "r.json"
    write(path, old("handbook"))
    found = standing(settings(), "handbook", DIGESTS, path, documents)
    assert found.differences == ((
        "interval of record: registered none (percentile), ran linearised below 30 documents",
    ) if differs else ())


def test_a_setting_that_came_after_an_entry_counts_with_its_default(tmp_path: Path) -> None:
    path, entry = tmp_path / "r.json", old("handbook")
    del entry["protocol"]["embedder"]["max_seq_length"]
    del entry["protocol"]["chunking"]["size_tolerance_tokens"]
    write(path, entry)
    assert standing(settings(), "handbook", DIGESTS, path).differences == ()
    ran = settings(embedders__mpnet__max_seq_length=384)
    assert standing(ran, "handbook", DIGESTS, path).differences == (
        "embedder.max_seq_length: registered 512, ran 384",
    )


def test_another_step_is_a_note_and_no_deviation(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    ran = settings(steps__new=["A4", "A2"])
    assert standing(ran, "handbook", DIGESTS, path).word == "confirmatory"
    from spanwise.registration.compared import explored

    assert explored(ran, load(path)[0]) == ["exploratory.steps.new: ran, not registered"]


def test_the_primary_cells_reranker_is_registered_with_its_settings(tmp_path: Path) -> None:
    path, cell = tmp_path / "r.json", {"primary__reranker": "cross"}
    its = {"model": "a/b", "kind": "cross-encoder"}
    ran = settings(**cell, rerankers={"cross": its})
    register(ran, {"handbook": DIGESTS}, "abc", "", path)
    ran = settings(**cell, rerankers={"cross": its | {"model": "a/c"}})
    assert standing(ran, "handbook", DIGESTS, path).differences == (
        "reranker.model: registered a/b, ran a/c",
    )


@pytest.mark.parametrize(("place", "value", "line"), [
    ("primary.embedder", "minilm", "primary.embedder: registered minilm, ran mpnet"),
    ("inference.seed", "20260710", 'inference.seed: registered "20260710", ran 20260710'),
    ("contrasts.C1", ["A3", "A4"], "contrasts.C1: registered A3, A4, ran A3, A1"),
    ("tuning", {"k": 1}, "tuning: registered, not in what ran"),
    ("embedder.query_prompt", "a\nb", 'embedder.query_prompt: registered "a\\nb", ran ""'),
])
def test_a_difference_reads_as_words_in_one_line(
    tmp_path: Path, place: str, value: object, line: str
) -> None:
    path = tmp_path / "r.json"
    write(path, old("handbook"))
    change(path, 1, f"protocol.{place}", value)
    assert standing(settings(), "handbook", DIGESTS, path).differences == (line,)


# ---------------------------------------------------------------- entries that were edited


def three(path: Path) -> None:
    """Two entries without digests, then two with: handbook, notes, letters, an amendment."""
    write(path, old("handbook"), old("notes"))
    for corpus, seed in (("letters", 1), ("handbook", 2)):
        ran = settings(inference__seed=seed)
        if corpus != "handbook":
            ran = settings(corpora={corpus: {"reader": "text", "path": f"data/{corpus}"}},
                           inference__seed=seed)
        its = DIGESTS if corpus == "handbook" else of(corpus)
        register(ran, {corpus: its}, "abc", "more", path)


def test_entries_as_written_are_whole_and_an_amendment_keeps_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    # Laid out as no program would: what stands there is no business of an amendment.
    text = json.dumps({"entries": [old("handbook")]}, indent=1).replace('"abc"', '"abc"   ')
    path.write_text(text, encoding="utf-8")
    register(settings(inference__seed=1), {"handbook": DIGESTS}, "def", "another seed", path)
    kept = text.rstrip()[:-1].rstrip()[:-1].rstrip()
    assert path.read_text(encoding="utf-8").startswith(f"{kept},\n")
    assert edited(load(path)) == []
    once = path.read_text(encoding="utf-8")
    register(settings(inference__seed=2), {"handbook": DIGESTS}, "def", "a third", path)
    kept = once.rstrip()[:-1].rstrip()[:-1].rstrip()
    assert path.read_text(encoding="utf-8").startswith(f"{kept},\n")
    assert edited(load(path)) == [] and len(load(path)) == 3
    three(path)
    assert edited(load(path)) == []


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_an_edit_is_found_wherever_a_digest_or_a_later_entry_tells(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "r.json"
    three(path)
    before = path.read_bytes()
    change(path, number, "protocol.inference.margin", 0.02)
    why = f"entry {number} was edited after it was written: its digest does not match"
    assert edited(load(path)) == [(number - 1, why)]
    # What the edited entry named before cannot be told; entries before it are not touched.
    entries = json.loads(path.read_text(encoding="utf-8"))["entries"]
    corpora = ["handbook", "notes", "letters"]
    for place, corpus in enumerate(corpora, 1):
        ran = settings(corpora={corpus: {"reader": "text", "path": f"data/{corpus}"}})
        its = DIGESTS if corpus == "handbook" else of(corpus)
        assert (why in standing(ran, corpus, its, path).differences) == (number <= place)
    with pytest.raises(RegistrationError, match=f"cannot be amended: entry {number} was edited"):
        register(settings(), {"handbook": DIGESTS}, "abc", "on top", path)
    assert json.loads(path.read_text(encoding="utf-8"))["entries"] == entries
    path.write_bytes(before)
    assert edited(load(path)) == []


def test_what_a_digest_alone_would_not_show_is_found_too(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    three(path)
    entries = load(path)
    # Edited, and the digest made anew.
    change(path, 3, "reason", "better")
    change(path, 3, "sha256", digest(load(path)[2]))
    assert edited(load(path)) == [(2, (
        "entry 4 does not follow entry 3 as it stands: an entry was removed or moved, or "
        "rewritten with its digest"
    ))]
    # An entry was taken out: an old one, one with a digest, and the first.
    write(path, entries[0], entries[2], entries[3])
    assert [i for i, _ in edited(load(path))] == [1]
    write(path, entries[0], entries[1], entries[3])
    assert [i for i, _ in edited(load(path))] == [1]
    write(path, entries[2])
    assert "does not follow" in edited(load(path))[0][1]
    # Taking the digest out makes no old entry of it.
    bare = {key: value for key, value in entries[3].items() if "sha256" not in key}
    write(path, *entries[:3], bare)
    assert "entry 4 was edited after it was written: its digest is missing" in [
        why for _, why in edited(load(path))
    ]


# ---------------------------------------------------------------- show


def test_show_says_in_words_what_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    assert "nothing is registered" in door.shown(path)
    three(path)
    first, _, third, fourth = door.shown(path).split("\n\n")
    assert first.startswith("entry 1: before\n") and "git alone proves it" in first
    assert "rules of the statistics: none" in first
    for line in (
        "entry 3: more", "primary cell: measure cov_ndcg@10, embedder mpnet, reranker none",
        "C1 = A3 − A1", "smallest effect of interest: ±0.01", "seeds: inference 1,",
        "over the family of contrasts, by Holm with m = 4", "below 30 documents linearised, t(G-1)",
        "power: 0.8, for a difference of 0.01 at alpha 0.0125", "exploratory: A2-A0 = A2 − A0",
        "    rewordings of another question", "documents d-letters…, questions q-letters…",
    ):
        assert line in third, line
    assert "entry 1 names it first, and counts" in fourth
    shown = json.loads(door.as_json(path))["entries"]
    assert [entry["number"] for entry in shown] == [1, 2, 3, 4]
    assert all(entry["edited"] is None for entry in shown)
    change(path, 4, "protocol.statistics", {})
    change(path, 4, "protocol.primary", {})
    assert "digest: entry 4 was edited" in door.shown(path)  # and nothing breaks

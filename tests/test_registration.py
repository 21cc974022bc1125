"""Confirmatory only while everything equals what was registered first."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spanwise import params
from spanwise.errors import RegistrationError
from spanwise.registration import load, register, standing

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
    assert changed.differences == ("corpora.handbook.questions: registered 'q1', ran 'q2'",)


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
    import json

    path = tmp_path / "r.json"
    register(settings(), {"handbook": DIGESTS}, "abc", "", path)
    other = settings(embedders__minilm__model="another/model")
    found = standing(other, "handbook", DIGESTS, path)
    assert found.differences == (
        "encoders.minilm.model: registered 'sentence-transformers/all-MiniLM-L6-v2', "
        "ran 'another/model'",
    )
    # An entry of before names it alone: that much still has to hold, and no more can be held.
    held = json.loads(path.read_text())
    del held["entries"][0]["protocol"]["encoders"]
    path.write_text(json.dumps(held))
    assert standing(settings(), "handbook", DIGESTS, path).word == "confirmatory"
    named = standing(settings(tokens__tokenizer="words"), "handbook", DIGESTS, path)
    assert named.differences == ("tokens.tokenizer: registered 'minilm', ran 'words'",)


@pytest.mark.parametrize(
    "text",
    [
        b'{"entries": [{}]}', b"[]", b"{", b"\xff",
        b'{"entries": [{"reason": "", "parent_commit": "", "protocol": {}}]}',
        b'{"entries": [{"reason": "", "parent_commit": "", "protocol": {"corpora": 1}}]}',
    ],
)
def test_a_file_that_is_no_registration_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "r.json").write_bytes(text)
    with pytest.raises(RegistrationError, match="git checkout"):
        load(tmp_path / "r.json")


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
        "corpora.handbook.contexts: registered False, ran True",
        "corpora.handbook.inducer: registered 'segmenter', ran 'hybrid'",
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

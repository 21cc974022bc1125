"""dvc.yaml against the code: what a stage depends on is what it reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import params

from .conftest import ROOT
from .imports import rooms

STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
TOP = set(params.Params.model_fields)


def script(stage: str) -> Path:
    return ROOT / re.search(r"stages/\w+\.py", STAGES[stage]["cmd"]).group()  # type: ignore[union-attr]


@pytest.mark.parametrize("stage", STAGES)
def test_deps_in_the_source_are_the_rooms_that_the_script_enters(stage: str) -> None:
    deps = STAGES[stage]["deps"]
    assert str(script(stage).relative_to(ROOT)) in deps
    assert sorted(d for d in deps if d.startswith("src/")) == rooms(script(stage))


@pytest.mark.parametrize("stage", STAGES)
def test_every_dep_is_an_output_of_another_stage_or_a_file_of_ours(stage: str) -> None:
    outs = [next(iter(out)) if isinstance(out, dict) else out
            for other in STAGES.values() for out in other.get("outs", [])]
    for dep in STAGES[stage]["deps"]:
        if dep.startswith("artifacts/") or dep == "reports":
            assert any(out == dep or out.startswith(f"{dep}/") for out in outs), dep
        elif "${" not in dep:
            assert (ROOT / dep).exists(), dep


@pytest.mark.parametrize("stage", STAGES)
def test_declared_params_are_parts_of_the_study(stage: str) -> None:
    for name in STAGES[stage].get("params", []):
        assert name.split(".")[0] in TOP


def test_a_changed_setting_reaches_each_stage_whose_script_names_it() -> None:
    """Coarse on purpose: a part of params.yaml that a script names must be among its params."""
    for stage in STAGES:
        source = script(stage).read_text(encoding="utf-8")
        declared = {name.split(".")[0] for name in STAGES[stage].get("params", [])}
        read = {part for part in TOP if re.search(rf"settings\.{part}\b", source)}
        if re.search(r"params\.load\(\)\.(\w+)", source):
            read |= set(re.findall(r"params\.load\(\)\.(\w+)", source)) & TOP
        calls = {"labels": "conditions", "embedder": "embedders", "corpus": "corpora"}
        for call, part in calls.items():
            if re.search(rf"\.{call}\(", source):
                read.add(part)
        if "models.tokenizer(" in source:
            read |= {"tokens", "embedders"}
        assert read <= declared, stage


def test_costly_outputs_survive_a_rerun_and_tracking_always_runs() -> None:
    for stage in ("induce", "ask", "label", "embed"):
        kept = [out for out in STAGES[stage]["outs"] if isinstance(out, dict)]
        assert any(options["persist"] for out in kept for options in out.values())
    assert STAGES["track"]["always_changed"] is True
    assert not STAGES["track"].get("outs")


def test_remotes_verify_and_nothing_is_reported_home() -> None:
    import configparser

    config = configparser.ConfigParser()
    config.read(ROOT / ".dvc" / "config")
    assert config["core"]["analytics"] == config["core"]["check_update"] == "false"
    assert config["'remote \"bundled\"'"]["verify"] == "true"
    # Any other remote is a person's own and stands in .dvc/config.local, as do all keys.
    assert set(config.sections()) == {"core", "'remote \"bundled\"'"}
    assert set(config["'remote \"bundled\"'"]) == {"url", "verify"}


def test_the_bundled_remote_holds_every_costly_output_that_the_lock_names() -> None:
    """A clone would compute what is missing, for an hour and without a word."""
    make = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    costly = re.search(r"^COSTLY := (.*)$", make, re.MULTILINE)
    assert costly is not None
    lock = yaml.safe_load((ROOT / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    files = ROOT / "remote" / "files" / "md5"
    wanted = {out["md5"] for stage in costly[1].split() for out in lock[stage]["outs"]}
    data = yaml.safe_load((ROOT / "data.dvc").read_text(encoding="utf-8"))
    wanted |= {out["md5"] for out in data["outs"]}
    assert len(wanted) > len(costly[1].split())
    there = {oid for oid in wanted if (files / oid[:2] / oid[2:]).is_file()}
    assert there == wanted
    for oid in (one for one in there if one.endswith(".dir")):
        listed = json.loads((files / oid[:2] / oid[2:]).read_text(encoding="utf-8"))
        named = {entry["md5"] for entry in listed}
        assert {one for one in named if (files / one[:2] / one[2:]).is_file()} == named

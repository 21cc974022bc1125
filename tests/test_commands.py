"""The commands about the project itself, and what holds for every command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from spanwise import layout, params, schemas
from spanwise.cli import main
from spanwise.tracking import place

from . import reporting_world as world
from .conftest import ROOT

PROGRAM = str(Path(sys.executable).parent / "spanwise")
COMMANDS = (
    "export", "score", "compare", "chunk", "spans", "show", "models", "models list",
    "models fetch", "ask",
    "register", "register make", "register show", "register check", "register amend",
    "remote", "remote check", "remote mend", "add", "sweep", "profile", "report", "ui", "doctor",
)
SERVE = place.serve
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command here: its exit code, what it printed, and what it said on stderr."""
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return run


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ui` serves until it is stopped: here no command may come as far as that."""
    def refuse(command: object) -> int:
        raise AssertionError(f"would run {command}")

    monkeypatch.setattr(place, "serve", refuse)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's own params.yaml and profiles, and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    return tmp_path


def change(path: Path, place: str, value: object) -> None:
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    *inner, last = place.split(".")
    part = settings
    for name in inner:
        part = part[name]
    part[last] = value
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


# ---------------------------------------------------------------- every command


def test_help_of_every_command_loads_no_heavy_room() -> None:
    """Half a second is not enough for one of them; what remains is the interpreter and typer."""
    code = (
        "import sys; from spanwise.cli import main\n"
        "for name in sys.argv[1:]:\n"
        "    assert main([*name.split(), '--help']) == 0, name\n"
        "print([m for m in ('numpy', 'pyarrow', 'scipy', 'torch', 'pandas', 'mlflow', 'yaml', "
        "'rich', 'spanwise.params', 'spanwise.schemas') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, "", *COMMANDS], capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1] == "[]"
    assert shown.stdout.count("Usage: spanwise") == len(COMMANDS) + 1


def test_the_list_of_commands_is_whole(said: Said) -> None:
    code, out, _ = said("--help")
    listed = re.findall(r"^  ([a-z]+) ", out.split("Commands:")[1], re.MULTILINE)
    assert code == 0 and set(listed) == {name.split()[0] for name in COMMANDS}


@pytest.mark.parametrize("arguments", [
    ["models", "list"], ["models", "fetch", "minilm"], ["ask", "handbook"], ["register"],
    ["report"], ["show", "q1"], ["profile", "study"], ["ui"],
    ["doctor"], ["sweep", "handbook"], ["export", "handbook"],
])
def test_outside_a_project_a_command_says_so_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    error = "error: params.yaml: not found; run spanwise in the project's root\n"
    assert said(*arguments) == (2, "", error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("data", "part"), [
    (b"corpora: [\n", "is not YAML"), (b"caf\xe9: 1\n", "cannot be read as UTF-8"),
    (b"", "expected a mapping, found NoneType"), (b"- a\n", "expected a mapping, found list"),
    (b"corpora: {}\n", "does not describe a study"),
    (b"primary: {}\nprimary: {}\n", "'primary' stands twice"),
    (b"conditions:\n  A0: {}\n  A0: {}\n", "'A0' stands twice"),
])
def test_settings_that_are_none_are_said(project: Path, said: Said, data: bytes, part: str) -> None:
    (project / "params.yaml").write_bytes(data)
    for arguments in (["models", "list"], ["register"], ["report"], ["show", "q"], ["ui"]):
        code, out, error = said(*arguments)
        assert (code, out) == (2, "") and "params.yaml" in error and part in error


def test_settings_may_repeat_what_they_merge(project: Path, said: Said) -> None:
    path = project / "params.yaml"
    text = path.read_text(encoding="utf-8")
    merged = text.replace("  minilm:", "  minilm: &base", 1).replace(
        "    model: sentence-transformers/all-mpnet-base-v2",
        "    <<: *base\n    model: sentence-transformers/all-mpnet-base-v2",
    )
    path.write_text(merged, encoding="utf-8")
    assert merged.count("base") > text.count("base") and said("models", "list")[0] == 0


@pytest.mark.parametrize("command", [
    f"'{PROGRAM}' chunk long.md --segmentation blocks", f"'{PROGRAM}' --help",
    f"'{PROGRAM}' chunk nowhere.md 2>&1",
])
def test_a_reader_that_leaves_early_sees_no_traceback(tmp_path: Path, command: str) -> None:
    (tmp_path / "long.md").write_text("A block.\n\n" * 3_000)
    for reader in ("head -1", "true", "(exec <&-; sleep 0.3)"):
        shown = subprocess.run(
            ["bash", "-c", f"{command} | {reader}"], cwd=tmp_path, capture_output=True, text=True,
            timeout=60,
        )
        assert shown.stderr == "", shown.stderr
        assert len(shown.stdout.splitlines()) == (reader == "head -1")


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    (tmp_path / "a.md").write_text("text\n")
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(
            [PROGRAM, "chunk", "a.md"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert shown.returncode == 1 and shown.stderr == "error: No space left on device\n"


# ---------------------------------------------------------------- models


def test_models_list_says_where_each_is(project: Path, said: Said) -> None:
    folder = project / "a model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    change(project / "params.yaml", "embedders.minilm.model", str(folder))
    change(project / "params.yaml", "embedders.mpnet.model", "nobody/no-such-model")
    change(project / "params.yaml", "llm.model", "no-such-model")
    code, out, _ = said("models", "list")
    expected = [
        ["minilm", str(folder), str(folder)], ["mpnet", "nobody/no-such-model", "not here"],
        ["llm", "no-such-model", "not here"],
    ]
    assert code == 0 and [line.split("\t") for line in out.splitlines()] == expected
    change(project / "params.yaml", "server.base_url", "http://127.0.0.1:8000/v1")
    code, out, _ = said("models", "list")
    expected[-1][-1] = "http://127.0.0.1:8000/v1"
    assert code == 0 and [line.split("\t") for line in out.splitlines()] == expected


@pytest.mark.parametrize(
    ("arguments", "url", "part"),
    [
        (["minilm", "--source", "x.gguf"], None, "name `llm`"),
        (["llm"], "http://127.0.0.1:8000/v1", "the language model runs there"),
    ],
)
def test_the_language_model_is_fetched_only_where_it_runs(
    project: Path, said: Said, arguments: list[str], url: str | None, part: str
) -> None:
    change(project / "params.yaml", "server.base_url", url)
    code, out, error = said("models", "fetch", *arguments)
    assert (code, out) == (2, "") and part in error


def test_models_fetch_knows_every_name_before_it_fetches(project: Path, said: Said) -> None:
    folder = project / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    change(project / "params.yaml", "embedders.minilm.model", str(folder))
    assert said("models", "fetch", "minilm") == (0, f"{folder}\n", "")
    code, out, error = said("models", "fetch", "minilm", "mnet")
    assert (code, out) == (2, "") and "no embedder 'mnet'; params.yaml has minilm, mpnet" in error
    assert said("models", "fetch")[0] == 2
    change(project / "params.yaml", "embedders.mpnet.model", "no owner/na me")
    code, _, error = said("models", "fetch", "mpnet")
    assert code == 2 and "model 'no owner/na me': no id `owner/name`" in error


def test_a_model_that_cannot_be_reached_exits_3(project: Path) -> None:
    change(project / "params.yaml", "embedders.mpnet.model", "nobody/no-such-model")
    shown = subprocess.run(
        [PROGRAM, "models", "fetch", "mpnet"], cwd=project, capture_output=True, text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "SPANWISE_MODELS": str(project / "store")},
    )
    assert (shown.returncode, shown.stdout) == (3, "")
    assert shown.stderr.startswith("error: nobody/no-such-model: it is not on this machine")
    assert "HF_HUB_OFFLINE" in shown.stderr and "copy its folder to" in shown.stderr
    assert not (project / "store").exists()


# ---------------------------------------------------------------- profile


def comments(text: str) -> set[str]:
    return set(re.findall(r"# .*", text))


def test_the_study_profile_applies_and_comments_stay(project: Path, said: Said) -> None:
    path = project / "params.yaml"
    before = path.read_text(encoding="utf-8")
    code, out, _ = said("profile", "study")
    assert code == 0 and out.endswith("corpora, embedders, rerankers, tokens, inducers, llm, "
                                      "server, primary; run `dvc repro`\n")
    after = path.read_text(encoding="utf-8")
    found, old = params.load(path), params.load(ROOT / "params.yaml")
    profile = yaml.safe_load((project / "profiles" / "study.yaml").read_text(encoding="utf-8"))
    dumped = found.model_dump()
    for part in ("corpora", "embedders", "rerankers"):  # replaced whole
        assert {name: {k: dumped[part][name][k] for k in its} for name, its in
                profile[part].items()} == profile[part] and set(dumped[part]) == set(profile[part])
    assert (found.tokens.tokenizer, found.primary.embedder) == ("bge-small", "bge-large")
    assert found.inducers.segmenter == old.inducers.segmenter.model_copy(
        update={"embedder": "bge-small"}
    )
    for part in ("conditions", "contrasts", "steps", "chunking", "retrieval", "inference"):
        assert getattr(found, part) == getattr(old, part)
    # Only comments inside the replaced mappings go, and the profile's own come in.
    inside = before[before.index("corpora:") : before.index("tokens:")]
    assert comments(before) - comments(after) == comments(inside)
    assert "# below: merge" in after and "# all splits of QASPER in one folder" in after
    assert said("profile", "study")[0] == 0 and path.read_text(encoding="utf-8") == after


def test_a_profile_says_what_it_drops_and_which_data_it_wants(project: Path, said: Said) -> None:
    (project / "data" / "qasper").mkdir(parents=True)
    code, out, error = said("profile", "study")
    assert code == 0 and out.count("\n") == 1
    assert error.splitlines() == [
        "note: corpora: handbook is dropped from params.yaml; its data stay in data/handbook",
        "note: embedders: minilm is dropped from params.yaml",
        "note: embedders: mpnet is dropped from params.yaml",
        "note: corpora: wikipedia has no data yet; put a MediaWiki XML dump (.xml or .xml.bz2) in "
        "data/wikipedia",
        "note: corpora: qasper has no data yet; put QASPER's official .json files in data/qasper",
    ]
    for name in ("wikipedia", "qasper"):
        (project / "data" / name).mkdir(exist_ok=True)
        (project / "data" / name / "file").touch()
    assert said("profile", "study")[::2] == (0, "")  # nothing more to drop, nothing missing


def test_a_profile_writes_over_nothing_that_git_has_not_kept(project: Path, said: Said) -> None:
    path = project / "params.yaml"
    git(project, "init", "-q")
    for keep in (False, True):  # a file that git has never seen, then one that has changed since
        change(path, "inference.seed", 1 + keep)
        before = path.read_bytes()
        code, out, error = said("profile", "study")
        assert (code, out) == (2, "") and path.read_bytes() == before
        assert error == ("error: params.yaml has uncommitted changes, which could not be had back; "
                         "commit them first, or give --force\n")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "all")
    assert said("profile", "study")[0] == 0
    assert said("profile", "study")[0] == 2
    assert said("profile", "study", "--force")[0] == 0


@pytest.mark.parametrize(("place_", "value", "part"), [
    ("chunkng", {}, "chunkng: unknown key; did you mean 'chunking'?"),
    ("conditions.A0.prefixes", "none", "conditions.A0.prefixes: unknown key; did you mean 'prefix"),
    ("retrieval.bm25.zzz", 1, "retrieval.bm25.zzz: unknown key; known here: k1, b"),
    ("corpora.handbook.pth", "x", "corpora.handbook.pth: unknown key; did you mean 'path'?"),
    ("chunking.cap_tokens", "350", "chunking.cap_tokens: expected a valid integer, found text '35"),
    ("conditions.A0.prefix", "pth", "expected 'none', 'path', 'placebo' or 'context', found 'pth'"),
    ("primary", {}, "primary.measure: missing; add it"),
    ("primary.measure", "map", "primary: measure 'map': one of "),
])
def test_a_wrong_setting_is_said_in_plain_words(
    project: Path, said: Said, place_: str, value: object, part: str
) -> None:
    change(project / "params.yaml", place_, value)
    code, _, error = said("models", "list")
    assert code == 2 and part in error and "Value error" not in error, error


@pytest.mark.parametrize(("name", "text", "part"), [
    ("unknown", None, "no profile 'unknown' in profiles/; there are minilm, real, study, "
     "tutorial, x"),
    ("../params", None, "no profile '../params'"),
    ("x", "tokens: {tokenizer: nobody}\n", "tokens.tokenizer 'nobody' is no embedder"),
    ("x", "chunking: {cap_tokens: 100}\n", "floor_tokens above half of cap_tokens"),
    ("x", "primary: {embeder: mpnet}\n", "primary.embeder: unknown key; did you mean 'embedder'?"),
    ("x", "chunking: 5\n", "chunking: expected a mapping of keys to values, found 5"),
    ("x", "corpora:\n", "corpora: expected a mapping of keys to values, found nothing"),
    ("x", "", "x.yaml: expected a mapping of parts, found NoneType"),
    ("x", "- tokens\n", "x.yaml: expected a mapping of parts, found CommentedSeq"),
    ("x", "tokens: [\n", "x.yaml: no YAML in UTF-8"),
    ("x", "tokens: {}\ntokens: {}\n", "x.yaml: no YAML in UTF-8"),
    ("x", "# caf\udce9\n", "x.yaml: no YAML in UTF-8"),
])
def test_a_profile_that_does_not_fit_leaves_the_file_untouched(
    project: Path, said: Said, name: str, text: str | None, part: str
) -> None:
    (project / "profiles" / "x.yaml").write_bytes((text or "").encode("utf-8", "surrogateescape"))
    before = (project / "params.yaml").read_bytes()
    code, out, error = said("profile", name)
    assert (code, out) == (2, "") and part in error
    assert (project / "params.yaml").read_bytes() == before
    assert {path.name for path in project.iterdir()} == {"params.yaml", "profiles"}


# ---------------------------------------------------------------- register


def git(project: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@e", *arguments], cwd=project, check=True,
        capture_output=True, text=True,
    ).stdout.strip()


def test_register_needs_a_parsed_corpus_and_a_commit_and_a_reason_to_amend(
    project: Path, said: Said
) -> None:
    file = project / "registration.json"
    code, _, error = said("register")
    mend = "not there; run `dvc repro parse ask`"
    assert code == 2 and f"artifacts/parse/handbook/report.json: {mend}" in error
    digests = {"documents": "d1", "questions": "q1"}
    layout.write_report(layout.stage("parse", "handbook") / "report.json",
                        {"study": {"digests": {**digests, "questions": "as parsed"}}, "sweep": {}})
    code, _, error = said("register")
    assert code == 2 and f"artifacts/ask/handbook/report.json: {mend}" in error
    layout.write_report(layout.stage("ask", "handbook") / "report.json",
                        {"origin": "given", "digests": digests})
    code, _, error = said("register")  # no repository at all
    assert code == 2 and "commit first" in error and not file.exists()
    git(project, "init", "-q")
    assert said("register")[0] == 2 and not file.exists()  # no commit in it
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    code, out, error = said("register")
    assert (code, error) == (0, "") and "git add registration.json && git commit" in out
    (entry,) = json.loads(file.read_text(encoding="utf-8"))["entries"]
    assert entry["parent_commit"] == git(project, "rev-parse", "HEAD")
    corpora = entry["protocol"]["corpora"]
    assert {key: corpora["handbook"][key] for key in digests} == digests
    before = file.read_bytes()
    code, _, error = said("register")
    assert code == 2 and "reason" in error
    code, _, error = said("register", "--reason", "again")
    assert code == 2 and "registered already" in error and file.read_bytes() == before
    change(project / "params.yaml", "inference.seed", 1)
    assert said("register")[0] == 2 and file.read_bytes() == before
    assert said("register", "--reason", "another seed")[0] == 0
    entries = json.loads(file.read_text(encoding="utf-8"))["entries"]
    assert entries[0] == entry and entries[1]["reason"] == "another seed"


# ---------------------------------------------------------------- show and report


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world")
    world.build(root, world.settings())
    (root / "params.yaml").write_text(
        yaml.safe_dump(world.settings().model_dump(mode="json"), sort_keys=False), encoding="utf-8"
    )
    return root


@pytest.fixture
def there(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The world of artifacts; its params.yaml comes back after the test."""
    monkeypatch.chdir(artifacts)
    before = (artifacts / "params.yaml").read_bytes()
    yield artifacts
    (artifacts / "params.yaml").write_bytes(before)


@pytest.mark.usefixtures("project")
def test_show_and_report_before_the_first_run_name_the_mend(said: Said) -> None:
    for arguments in (["show", "q1"], ["report"]):
        code, out, error = said(*arguments)
        assert (code, out) == (2, "") and error.startswith("error: artifacts/")
        assert "dvc repro" in error and not Path("reports").exists()


@pytest.mark.usefixtures("there")
def test_show_shows_what_was_embedded_and_where_the_evidence_first_stands(said: Said) -> None:
    out = said("show", "doc-1-q0", "--top", "50")[1]
    parts = {part.split("  ")[0]: part.splitlines() for part in out.split("\n\n")[3:]}
    assert parts["A3"][0].startswith("A3  induced, path of depth 3, flat")
    assert parts["P"][0].startswith("P  induced, placebo of depth 3, flat")
    assert parts["A3-d1"][0].startswith("A3-d1  induced, path of depth 1, flat")
    table = schemas.read(layout.stage("label", "harbour") / "labels.parquet", schemas.LABELS)
    labels = {(row["label"], row["chunk_id"]): row["prefix"].strip() for row in table.to_pylist()}
    conditions = params.load().conditions
    misplaced = 0
    for name, (_, *lines) in parts.items():
        if name == "A1":
            continue
        rows = [re.fullmatch(r" ([* ]) ?(\d+)  -?\d+\.\d{4}  (\S+)  (.*)", line) for line in lines]
        found = [row for row in rows if row]
        assert found
        for row in found:
            assert row[4] == (labels[conditions[name].label, row[3]] or "(no prefix)")
            misplaced += name == "P" and not row[4].startswith(f"[Manual {row[3][4]}")
        first = next((row[2] for row in found if row[1] == "*"), None)
        assert lines[0] == (f"  first evidence at rank {first}" if first
                            else "  no evidence in the top 50")
        bonus = "  scores: +2 for chunks of the sections that were kept"
        assert (bonus in lines) == (conditions[name].retrieval == "routed")
    assert misplaced  # a placebo's path is another document's


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(("arguments", "parts"), [
    (["doc-1-q9"], ["has a question 'doc-1-q9'; did you mean doc-1-q"]),
    (["zzzz"], ["has a question 'zzzz'"]), ([""], ["has a question ''"]),
    (["doc-1-q0", "--condition", "A9"], ["condition 'A9': params.yaml has A0, A1, A2"]),
    (["doc-1-q0", "--embedder", "bge"], ["embedder 'bge': params.yaml has minilm, mpnet"]),
    (["doc-1-q0", "--top", "0"], ["--top"]), ([], ["Missing argument"]),
])
def test_show_says_what_it_does_not_know(
    said: Said, arguments: list[str], parts: list[str]
) -> None:
    code, out, error = said("show", *arguments)
    assert (code, out) == (2, "") and all(part in error for part in parts), error


@pytest.mark.usefixtures("there")
def test_show_shows_the_record_of_each_condition(said: Said) -> None:
    code, out, _ = said("show", "doc-1-q0", "--condition", "A3", "--condition", "A1", "--top", "2")
    assert code == 0
    question, *rest = out.split("\n\n")
    assert question == "doc-1-q0 (harbour, factoid, doc-1)"
    assert "A1  fixed, context, flat\n  absent: no contexts were asked for" in out
    runs = schemas.read(layout.cell("retrieve", "harbour", "mpnet") / "runs.parquet", schemas.RUNS)
    ranked = [row["chunk_id"] for row in runs.to_pylist()
              if (row["condition"], row["question_id"]) == ("A3", "doc-1-q0")]
    assert re.findall(r"^ [* ] ?\d+  -?\d\.\d{4}  (\S+)", out, re.MULTILINE) == ranked[:2]
    assert "A0  " not in out and "evidence doc-1:" in rest[1]
    assert "⟦" in rest[1] and "a demonstration corpus" not in out


def test_show_notices_settings_that_changed_after_the_run(there: Path, said: Said) -> None:
    path = there / "params.yaml"
    row = {"segmentation": "native", "prefix": "path", "depth": 1, "retrieval": "flat"}
    change(path, "conditions.G3-d1", row)
    code, out, _ = said("show", "doc-1-q0", "--condition", "G3-d1")
    assert code == 0 and "no record: it joined params.yaml after the last run" in out
    change(path, "conditions.A2.segmentation", "native")
    code, out, error = said("show", "doc-1-q0", "--condition", "A2")
    assert (code, out) == (2, "") and "no native chunk" in error and "dvc repro" in error


def test_report_builds_the_page_from_what_is_there(there: Path, said: Said) -> None:
    code, out, error = said("report")
    assert (code, error) == (0, "")
    # The verdicts of each corpus, C1 to C4, and where the page is.
    assert "toy: cov_ndcg@10, " in out and out.endswith("reports/report.html\n")
    assert re.findall(r"^  (C\d)  ", out, re.MULTILINE)[:4] == ["C1", "C2", "C3", "C4"]
    written = {path.name: path.read_bytes() for path in (there / "reports").iterdir()
               if path.is_file()}
    assert {"report.html", "metrics.json"} <= set(written)
    (there / layout.stage("score", "toy") / "scores.parquet").rename(there / "aside")
    try:
        code, out, error = said("report")
    finally:
        (there / "aside").rename(there / layout.stage("score", "toy") / "scores.parquet")
    assert code == 0 and "\ntoy: cov_ndcg@10" not in out  # what is not whole is left out, and named
    assert error.startswith("note: toy is left out: artifacts/score/toy/scores.parquet: no such ")
    assert "toy (artifacts/score/toy/scores.parquet" in (
        there / "reports" / "report.html").read_text(encoding="utf-8")
    assert said("report")[0] == 0
    assert written == {path.name: path.read_bytes() for path in (there / "reports").iterdir()
                       if path.is_file()}


# ---------------------------------------------------------------- ui


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((place.HOST, 0))
        return int(probe.getsockname()[1])


def test_a_port_that_is_taken_is_one_line_with_the_mend(project: Path, said: Said) -> None:
    with socket.socket() as held:
        held.bind((place.HOST, 0))
        held.listen()
        port = held.getsockname()[1]
        code, out, error = said("ui", "--port", str(port))
    assert (code, out) == (2, "") and error.count("\n") == 1
    assert error.startswith(f"error: port {port} of 127.0.0.1 cannot be used: ")
    assert "e.g. --port " in error and not (project / "mlruns").exists()


# Stands for a server: a worker of its own, and deaf to a polite request if told so.
SERVER = """
import os, signal, subprocess, sys, time
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("ready", flush=True)
time.sleep(60)
"""
ASIDE = """
import sys
import time
import urllib.request
from spanwise.tracking import place
place.PATIENCE_SECONDS = 0.5
sys.exit(place.serve([sys.executable, "-c", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("kind", ["polite", "deaf"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_asked_to_end_leaves_no_process(kind: str, number: int) -> None:
    served = subprocess.Popen(
        [sys.executable, "-c", ASIDE, SERVER, kind], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )
    assert served.stdout
    assert served.stdout.readline() == "ready\n"
    served.send_signal(number)
    # All of them hold the pipe: it ends when the last one has ended, by itself only after 60 s.
    _, error = served.communicate(timeout=30)
    assert (served.returncode, error) == (0, "")


def test_a_server_that_ends_by_itself_gives_its_exit_code() -> None:
    for code, expected in (("sys.exit(0)", 0), ("sys.exit(3)", 3), ("os.abort()", 1)):
        assert SERVE([sys.executable, "-c", f"import os, sys; {code}"]) == expected


@pytest.mark.slow
def test_ui_prints_its_link_and_ctrl_c_ends_it_without_a_word(project: Path) -> None:
    port = free_port()
    environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    with (project / "said").open("w+") as log:
        ui = subprocess.Popen(
            [PROGRAM, "ui", "--port", str(port)], cwd=project, stdout=subprocess.PIPE, stderr=log,
            text=True, env=environment,
        )
        assert ui.stdout
        link = f"http://127.0.0.1:{port}/"
        assert ui.stdout.readline() == f"{link}#/experiments  (Ctrl-C stops it)\n"
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and ui.poll() is None:
            try:
                assert b"<html" in urllib.request.urlopen(link, timeout=5).read()
                break
            except OSError:
                time.sleep(0.3)
        else:
            raise AssertionError((project / "said").read_text())
        ui.send_signal(signal.SIGINT)
        ui.communicate(timeout=30)
        assert ui.returncode == 0 and "Traceback" not in (project / "said").read_text()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)

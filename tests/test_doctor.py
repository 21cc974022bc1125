"""`spanwise doctor` in real project folders: what would fail or cost is said before it does."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from spanwise import layout, params, registration, schemas
from spanwise.cli import main
from spanwise.doctor import cache, estimates, machine, pipeline, remotes, weights
from spanwise.doctor.corpora import Seen, look, registered
from spanwise.documents.model import sha256
from spanwise.embedding import key

from .conftest import ROOT

HULL = "# Hull\n\nThe keel weighs 410 kg and is bolted with nine bolts.\n"
RIG = "# Rig\n\nThe mast is 14 m high. Check the shrouds every spring.\n"
QUESTIONS = [
    {"id": "keel", "document": "hull", "question": "How heavy?", "anchors": [{"quote": "410 kg"}]},
    {"id": "mast", "document": "rig", "question": "How high?", "anchors": [{"quote": "14 m"}]},
]
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return run


def dvc(*arguments: str, at: Path) -> str:
    done = subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=at, capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def make(folder: Path) -> None:
    """A corpus of two documents, counted in words, and an encoder's folder without its weights'
    worth: it is looked at and never loaded."""
    notes, model = folder / "data" / "notes", folder / "model"
    notes.mkdir(parents=True)
    (notes / "hull.md").write_text(HULL, encoding="utf-8")
    (notes / "rig.md").write_text(RIG, encoding="utf-8")
    write_questions(folder, QUESTIONS)
    model.mkdir()
    shape = {"num_hidden_layers": 6, "hidden_size": 384, "max_position_embeddings": 512}
    (model / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    (model / "model.safetensors").write_bytes(bytes(1000))
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = {"notes": {"reader": "markdown", "path": "data/notes"}}
    settings["embedders"] = {"small": {"model": "model", "pooling": "mean"}}
    settings["primary"]["embedder"] = settings["inducers"]["segmenter"]["embedder"] = "small"
    settings["tokens"]["tokenizer"] = "words"
    write_params(folder, settings)
    shutil.copy(ROOT / "dvc.yaml", folder)


def write_questions(folder: Path, questions: list[dict[str, object]]) -> None:
    (folder / "data/notes/questions.yaml").write_text(yaml.safe_dump(questions), encoding="utf-8")


def write_params(folder: Path, settings: object) -> None:
    (folder / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def change(place: str, value: object) -> None:
    settings = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    *inner, last = place.split(".")
    part = settings
    for name in inner:
        part = part[name]
    part[last] = value
    write_params(Path(), settings)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project under git and DVC; its data are in a folder remote outside of it."""
    base = tmp_path_factory.mktemp("tracked")
    project = base / "project"
    make(project)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    dvc("init", "-q", at=project)
    dvc("remote", "add", "-d", "own", "../store", at=project)
    dvc("remote", "modify", "own", "verify", "true", at=project)
    dvc("add", "-q", "data", at=project)
    dvc("push", "-q", "data.dvc", at=project)
    return base


@pytest.fixture
def project(tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(tracked, tmp_path / "base", symlinks=True)
    monkeypatch.chdir(tmp_path / "base" / "project")
    monkeypatch.delenv("SPANWISE_WORKERS", raising=False)
    return Path()


def status(out: str, place: str) -> str:
    (found,) = re.findall(rf"^(\w+) +{re.escape(place)}: ", out, re.M)
    return found


@pytest.mark.usefixtures("project")
def test_a_project_without_problems_ends_with_0_and_json_says_the_same(said: Said) -> None:
    code, out, _ = said("doctor")
    assert code == 0, out
    assert "\x1b" not in out and " checks: 0 problems, " in out.splitlines()[-1]
    code, printed, _ = said("doctor", "--json")
    found = json.loads(printed)
    assert code == found["problems"] == 0
    places = [(c["status"], c["place"]) for c in found["checks"]]
    shown = re.findall(r"^(ok|note|problem) +([^:\n]+): ", out, re.M)
    assert places == shown
    assert {"threads", "memory", "disk", "embedder small", "tokenizer", "language model",
            "remote own", "remote", "corpus notes", "size notes", "window notes small",
            "cutting notes", "work notes", "registration notes", "time"
            } == {place for _, place in places}
    work = {w["stage"]: w for w in found["estimates"]["notes"]["work"]}
    # Six labels of two documents with fixed and induced chunks, two native ones, two questions.
    assert work["embed small"]["left"] == work["embed small"]["of"] > 0
    assert work["embed small"]["seconds"] > 0


@pytest.mark.usefixtures("project")
def test_a_broken_quote_is_shown_with_the_nearest_text(said: Said) -> None:
    broken = {**QUESTIONS[0], "anchors": [{"quote": "boltet with nine bolts"}]}
    write_questions(Path(), [broken, QUESTIONS[1]])
    code, out, _ = said("doctor")
    assert code == 1 and status(out, "corpus notes") == "problem"
    assert 'quote: "bolted with nine bolts."' in out
    assert status(out, "work notes") == "ok"  # the documents are there, so costs are known


@pytest.mark.usefixtures("project")
def test_a_missing_model_is_a_problem_only_while_it_has_texts_to_embed(said: Said) -> None:
    change("embedders.small.model", "nobody/no-such-model")
    code, out, _ = said("doctor")
    assert code == 1 and status(out, "embedder small") == "problem"
    assert "-> spanwise models fetch small\n" in out
    (line, _) = weights.encoders(params.load(), {"small": 0})
    assert line.status == "note"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("place", "value", "words"), [
    ("max_seq_length", 1024, "max_seq_length 1024 is above the 512 positions"),
    ("pooling", "cls", "pooling 'cls', the model itself says 'mean'"),
])
def test_settings_that_a_model_would_refuse_are_found_without_loading_it(
    place: str, value: object, words: str
) -> None:
    Path("model/1_Pooling").mkdir()
    Path("model/1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
    change(f"embedders.small.{place}", value)
    (line, _) = weights.encoders(params.load(), {})
    assert line.status == "problem" and words in line.said


@pytest.mark.usefixtures("project")
def test_a_server_that_does_not_answer_is_given_up_in_seconds(said: Said) -> None:
    change("corpora.notes.contexts", True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        change("server.base_url", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        begun = time.monotonic()
        (line,) = weights.language_model(params.load(), {"contexts of notes": 2})
        assert time.monotonic() - begun < weights.SERVER_S + 3
    assert line.status == "problem" and "no whole answer within 2 s" in line.said
    code, out, _ = said("doctor")  # and now nobody listens there
    assert code == 1 and status(out, "server") == "problem"
    assert "contexts of notes: 2" in out and "or set it to null" in out


@pytest.mark.usefixtures("project")
def test_a_server_is_asked_for_the_model_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["Authorization"])
            body = b'{"data": [{"id": "another"}]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("NOTES_KEY", "planted-secret")
    server = HTTPServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        change("server.base_url", f"http://127.0.0.1:{server.server_port}/v1")
        change("server.api_key_variable", "NOTES_KEY")
        found = [*weights.language_model(params.load(), {"x": 1})]
        change("llm.model", "another")
        found += weights.language_model(params.load(), {"x": 1})
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [line.status for line in found] == ["problem", "ok"]
    assert "serves another, not qwen" in found[0].said
    assert asked == ["Bearer planted-secret"] * 2
    assert not any("planted" in line.said + line.mend for line in found)


def test_a_flipped_byte_in_the_cache_is_found_removed_and_fetched_again(
    project: Path, said: Said
) -> None:
    # DVC trusts an object that has been there: it neither sees the flip nor fetches the object.
    (path,) = [p for p in cache.objects(Path(".dvc/cache")) if p.read_bytes() == HULL.encode()]
    path.chmod(0o644)
    path.write_bytes(HULL.replace("410", "411").encode())
    code, out, _ = said("doctor", "--deep", "--dry-run")
    assert code == 1 and path.exists()
    code, out, err = said("doctor", "--deep")
    assert code == 1 and not path.exists()
    assert f"cache: data/notes/hull.md: object {path} is damaged: " in out
    assert "it was removed\n" in out and err == ""  # no progress bar in a pipe
    dvc("pull", "-q", "data.dvc", at=project)
    assert path.read_bytes() == HULL.encode()
    code, out, _ = said("doctor", "--deep")
    assert code == 0 and status(out, "cache") == "ok"


def test_a_file_of_the_workspace_with_the_same_damage_is_named(project: Path, said: Said) -> None:
    hull = project / "data/notes/hull.md"
    (path,) = [p for p in cache.objects(Path(".dvc/cache")) if p.read_bytes() == HULL.encode()]
    path.chmod(0o644)
    for damaged in (path, hull):
        damaged.write_bytes(HULL.replace("410", "411").encode())
    out = said("doctor", "--deep")[1]
    assert ("-> delete data/notes/hull.md, which has the same damage; then `dvc pull "
            "--allow-missing` fetches") in out
    hull.unlink()
    dvc("pull", "-q", "data.dvc", at=project)
    assert hull.read_text(encoding="utf-8") == HULL


@pytest.mark.usefixtures("project")
def test_a_damaged_folder_object_and_its_files_come_back(said: Said) -> None:
    (folder,) = Path(".dvc/cache/files/md5").glob("*/*.dir")
    good = folder.read_bytes()
    folder.chmod(0o644)
    folder.write_bytes(b'[{"md5": 1}]')
    assert cache.fault(folder) is not None
    assert said("doctor", "--deep")[0] == 1 and not folder.exists()
    shutil.rmtree("data")
    dvc("pull", "-q", "data.dvc", at=Path())
    assert folder.read_bytes() == good
    assert Path("data/notes/rig.md").read_text(encoding="utf-8") == RIG


@pytest.mark.usefixtures("project")
def test_private_text_may_not_go_to_a_remote_in_the_repository(said: Said) -> None:
    Path("remote").mkdir()
    dvc("remote", "add", "-d", "bundled", "remote", at=Path())
    code, out, _ = said("doctor")
    assert code == 1 and status(out, "remote") == "problem"
    assert "would put notes into it" in out
    dvc("remote", "add", "--local", "-d", "mine", "../mine", at=Path())
    code, out, _ = said("doctor")
    assert code == 0 and status(out, "remote") == "ok"
    assert status(out, "remote mine") == "note"  # the folder is not there yet


def test_mends_of_a_remote_of_ones_own_are_commands_that_work(
    project: Path, said: Said, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    dvc("remote", "add", "--local", "-d", "mine", str(tmp_path / "mine"), at=project)
    out = said("doctor")[1]
    assert "dvc remote modify --local mine verify true" in out
    dvc("remote", "modify", "--local", "mine", "verify", "true", at=project)
    assert "modify --local mine" not in said("doctor")[1]


@pytest.mark.usefixtures("project")
def test_a_password_in_a_remote_is_not_printed(said: Said) -> None:
    dvc("remote", "add", "far", "https://me:planted-secret@127.0.0.1:1/store", at=Path())
    out = "".join(said("doctor")[1:]) + said("doctor", "--json")[1]
    assert "127.0.0.1:1/store" in out and "planted" not in out


@pytest.mark.usefixtures("project")
def test_duplicates_and_few_documents_are_said_with_what_they_mean() -> None:
    Path("data/notes/copy.md").write_text(HULL, encoding="utf-8")
    _, found = look(params.load(), "notes")
    text = "\n".join(line.said for line in found)
    assert "documents of the same text: copy = hull" in text
    # 2 / 2^8 = .0078 is the first p below .05 / 4; 2 / 2^2 is .5.
    assert "p is at least 0.5" in text and "out of reach below 8" in text
    assert "fewer than 30: the interval of record is Student's" in text
    assert all(line.status in ("ok", "note") for line in found)


@pytest.mark.usefixtures("project")
def test_the_questions_that_the_margin_takes_follow_from_its_formula() -> None:
    """(z + z')^2 sd^2 / margin^2 for many documents, .0125 two-sided and .8: (2.498 + .842)^2."""
    change("inference.margin", 0.02)
    _, found = look(params.load(), "notes")
    (line,) = [f.said for f in found if "by the margin" in f.said]
    exact = (2.4977 + 0.8416) ** 2 * 0.3**2 / 0.02**2
    shown = int(re.search(r"takes about (\d+) questions", line)[1])  # type: ignore[index]
    assert shown == pytest.approx(exact, rel=0.03)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("where", "words"), [
    ("nowhere", "data/notes is not there"), ("file", "notes.jsonl is not there"),
    ("no questions", "brings none"), ("bytes", "hull.md"),
])
def test_what_parse_or_ask_would_refuse_is_refused_now(where: str, words: str, said: Said) -> None:
    questions = Path("data/notes/questions.yaml")
    if where == "nowhere":
        Path("data/notes").rename("elsewhere")
    elif where == "bytes":
        Path("data/notes/hull.md").write_bytes(b"\xff\xfe\x00")
    else:
        questions.unlink()
        if where == "file":
            change("corpora.notes.questions", "questions/notes.jsonl")
    code, out, _ = said("doctor")
    assert code == 1 and words in out
    assert "Traceback" not in out


def test_params_edited_into_nonsense_are_a_clear_error(project: Path, said: Said) -> None:
    (project / "params.yaml").write_text("corpora: [1, 2\n", encoding="utf-8")
    code, out, err = said("doctor")
    assert (code, out) == (2, "") and err.startswith("error: params.yaml is not YAML: ")


def stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the stages `parse` and `ask`."""
    import runpy

    for stage in ("parse", "ask"):
        monkeypatch.setattr(sys, "argv", [stage, "notes"])
        runpy.run_path(str(ROOT / "stages" / f"{stage}.py"))["main"]("notes")


@pytest.mark.usefixtures("project")
def test_registration_is_compared_once_parse_and_ask_have_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, _ = look(params.load(), "notes")
    (line,) = registered(params.load(), seen)
    assert line.status == "ok" and "once `parse` and `ask` have run" in line.said
    stages(monkeypatch)
    (line,) = registered(params.load(), seen)
    assert line.status == "note" and "before small runs: spanwise register" in line.mend
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
                    "--allow-empty", "-m", "a"], check=True)
    registration.register_now(params.load(), "")
    (line,) = registered(params.load(), seen)
    assert line.status == "ok" and "confirmatory" in line.said
    change("inference.seed", 7)
    (line,) = registered(params.load(), seen)
    assert line.status == "note" and "exploratory: inference.seed" in line.said


@pytest.mark.usefixtures("project")
def test_what_is_kept_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two labelled chunks has its vector: it and no other is taken off."""
    stages(monkeypatch)
    seen, _ = look(params.load(), "notes")
    assert seen.unchanged
    rows = [
        {"label": "fixed-none-0", "chunk_id": f"{d.doc_id}:0-{len(d.body)}", "doc_id": d.doc_id,
         "start": 0, "end": len(d.body), "prefix": "", "prefix_tokens": 0,
         "text_sha256": sha256(d.body)}
        for d in seen.documents
    ]
    path = layout.stage("label", "notes") / "labels.parquet"
    schemas.write(path, schemas.LABELS, schemas.table(schemas.LABELS, rows))
    settings = params.load().embedders["small"]
    held = schemas.vectors(2)
    vector = {"key": key(settings, seen.documents[0].body), "tokens": 3, "seen": 9,
              "vector": [1.0, 0.0]}
    schemas.write(layout.cell("embed", "notes", "small") / "vectors.parquet", held,
                  schemas.table(held, [vector]))
    made = estimates.estimate(params.load(), seen, machine.look()[0], {384: 1e9}.__getitem__)
    (work,) = [w for w in made.work if w.stage == "embed small"]
    assert made.counted and (work.of, work.left) == (4, 3)  # with two questions
    Path("data/notes/rig.md").write_text(RIG + "More.\n", encoding="utf-8")
    changed, _ = look(params.load(), "notes")
    assert not changed.unchanged


def test_operations_follow_from_layers_and_widths() -> None:
    """One layer of width 2, inner 8: 2 (4 4 + 2 2 8) = 96 for a token, and 4 2 10 for attention."""
    its = weights.Shape(1, 2, 8, 0, True)
    assert its.operations(30, 3) == 30 * (96 + 80)
    assert machine.rate(64) > 1e6


@pytest.mark.usefixtures("project")
def test_a_chunk_that_an_encoder_cannot_see_whole_is_foretold(said: Said) -> None:
    change("embedders.small.max_seq_length", 256)
    code, out, _ = said("doctor")
    assert code == 0 and status(out, "window notes small") == "note"
    assert "is never embedded" in out and "-> lower chunking.cap_tokens to " in out


@pytest.mark.usefixtures("project")
def test_a_corpus_too_large_for_seconds_is_read_with_deep_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spanwise.doctor.corpora.LARGE", 10)
    seen, (line,) = look(params.load(), "notes")
    assert seen == Seen("notes", params.load().corpus("notes")) and line.status == "note"
    assert len(look(params.load(), "notes", deep=True)[0].documents) == 2


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_refuses_them(
    environment: dict[str, str], coloured: bool
) -> None:
    program = str(Path(sys.executable).parent / "spanwise")
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen([program, "doctor"], stdout=theirs, stdin=subprocess.DEVNULL,
                               env={**inherited, **environment})
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait() == 0
    assert (b"\x1b[3" in said) is coloured and b"corpus notes" in said


# ---------------------------------------------------------------- what dvc.lock and the cache say


STAGES = """\
stages:
  parse:
    matrix: {corpus: "${corpora}"}
    cmd: python step.py artifacts/parse/${item.corpus} data/${item.corpus}
    deps: ["data/${item.corpus}"]
    params: ["corpora.${item.corpus}"]
    outs: ["artifacts/parse/${item.corpus}"]
  induce:
    matrix: {corpus: "${corpora}"}
    cmd: python step.py artifacts/induce/${item.corpus} artifacts/parse/${item.corpus}
    deps: ["artifacts/parse/${item.corpus}", step.py]
    params: [inducers]
    outs: [{"artifacts/induce/${item.corpus}": {persist: true}}]
  report:
    cmd: python step.py reports artifacts/induce
    deps: [artifacts/induce]
    outs: [reports]
"""
STEP = """\
import pathlib, sys
to, source = map(pathlib.Path, sys.argv[1:])
to.mkdir(parents=True, exist_ok=True)
texts = [p.read_text() for p in sorted(source.rglob("*")) if p.suffix in (".md", ".txt")]
(to / "all.txt").write_text("".join(texts))
"""


@pytest.fixture(scope="module")
def ran_once(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after a run of three small stages by DVC, with everything pushed."""
    base = tmp_path_factory.mktemp("ran") / "base"
    shutil.copytree(tracked, base, symlinks=True)
    (base / "project/dvc.yaml").write_text(STAGES, encoding="utf-8")
    (base / "project/step.py").write_text(STEP, encoding="utf-8")
    dvc("repro", "-q", at=base / "project")
    dvc("push", "-q", at=base / "project")
    return base


@pytest.fixture
def ran(ran_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ran_once, tmp_path / "base", symlinks=True)
    monkeypatch.chdir(tmp_path / "base" / "project")
    return Path()


def stands() -> dict[str, tuple[str, str | None]]:
    config = remotes.configured(Path())
    assert config is not None
    read = pipeline.read(params.load(), remotes.stores(config))
    return {stage.name: (stage.where, stage.changed) for stage in read.stages}


def work_lines(out: str, corpus: str = "notes") -> str:
    return out.split(f"work {corpus}: ")[1].split("registration")[0]


def test_a_digest_of_a_folder_is_what_dvc_says_it_is(ran: Path) -> None:
    (ran / "data/notes/__pycache__").mkdir()
    (ran / "data/notes/__pycache__/x.pyc").write_bytes(b"x")
    (ran / ".dvcignore").write_text("# compiled\n__pycache__\n", encoding="utf-8")
    assert stands()["parse@notes"] == ("here", None)
    here, settings = ran.resolve(), params.load()
    with contextlib.chdir("/"):  # it is the project's .dvcignore, wherever the command runs
        found = pipeline.read(settings, root=here).find("parse@notes")
    assert found is not None and found.changed is None
    assert pipeline.tree_md5(Path("data/notes"), most=10) == ""
    (ran / ".dvcignore").write_text("", encoding="utf-8")
    assert stands()["parse@notes"] == ("here", "data")


@pytest.mark.usefixtures("ran")
def test_a_clone_that_was_pulled_has_no_work_left_that_the_lock_says_is_done(said: Said) -> None:
    """As after `make pull`: trees are there, what `parse` leaves is not."""
    shutil.rmtree("artifacts/parse")
    assert stands() == {"parse@notes": ("cache", None), "induce@notes": ("here", None),
                        "report": ("here", None)}
    out = said("doctor")[1]
    assert "induce (segmenter): nothing, all 2 documents are done" in work_lines(out)
    assert "start-up and tables: nothing, all 2 stages are done" in work_lines(out)
    assert "outputs: 1 that were made before" in out and "-> dvc checkout --allow-missing" in out
    dvc("checkout", "-q", "--allow-missing", at=Path())
    assert stands()["parse@notes"] == ("here", None)


@pytest.mark.usefixtures("ran")
def test_a_clone_that_was_not_pulled_is_told_what_a_pull_spares(said: Said) -> None:
    for folder in ("artifacts", "reports", ".dvc/cache"):
        shutil.rmtree(folder) if Path(folder).is_dir() else Path(folder).unlink()
    assert set(stands().values()) == {("remote", None)}
    out, command = said("doctor")[1], "dvc pull --allow-missing"
    assert f"induce (segmenter): nothing after `{command}`; without it 2 of 2" in work_lines(out)
    assert status(out, "outputs") == status(out, "time") == "note"
    assert re.search(rf"time: about \S+ s in all.*; .* more without `{command}`", out)
    assert f"-> first {command}\n" in out
    dvc(*command.split()[1:], at=Path())
    assert set(stands().values()) == {("here", None)}
    assert "nothing, all 2 documents are done" in work_lines(said("doctor")[1])


@pytest.mark.usefixtures("ran")
def test_what_only_a_server_may_have_is_unknown_until_it_is_asked(said: Said) -> None:
    shutil.rmtree("artifacts/induce")
    shutil.rmtree(".dvc/cache")
    dvc("remote", "add", "-f", "-d", "own", "https://127.0.0.1:1/store", at=Path())
    assert stands()["induce@notes"] == ("unknown", None)
    out = said("doctor")[1]
    assert ("induce (segmenter): unknown until `dvc pull --allow-missing`, which brings it if a "
            "remote has it; else 2 of 2 documents") in work_lines(out)
    assert "own may have them and was not asked" in out
    assert "more if nothing comes of `dvc pull --allow-missing`" in out


@pytest.mark.usefixtures("ran")
def test_a_corpus_that_was_just_added_has_all_of_its_work_left(said: Said) -> None:
    shutil.copytree("data/notes", "data/more")
    change("corpora.more", {"reader": "markdown", "path": "data/more"})
    assert {name: why for name, (_, why) in stands().items() if why} == {
        "parse@more": "new", "induce@more": "new", "report": "inputs",
    }
    out = said("doctor")[1]
    assert "induce (segmenter): 2 of 2 documents, about " in work_lines(out, "more")
    assert "start-up and tables: 2 of 2 stages, about " in work_lines(out, "more")
    assert "nothing, all 2 documents are done" in work_lines(out, "notes")


@pytest.mark.usefixtures("ran")
@pytest.mark.parametrize(("what", "why", "words"), [
    ("text", {"data", "inputs"}, "at most 2 of 2 documents"),
    ("setting", {"settings"}, "2 of 2 documents, about"),
    ("code", {"code"}, "2 of 2 documents, about"),
])
def test_what_changed_is_told_apart(what: str, why: set[str], words: str, said: Said) -> None:
    """No report stands in the folder of `induce`, so none of its trees is known to serve."""
    if what == "text":
        Path("data/notes/rig.md").write_text(RIG + "More.\n", encoding="utf-8")
    elif what == "setting":
        change("inducers.segmenter.section_tokens", 90)
    else:
        Path("step.py").write_text(f"{STEP}# edited\n", encoding="utf-8")
    assert {changed for name, (_, changed) in stands().items() if changed} >= why
    assert f"induce (segmenter): {words}" in work_lines(said("doctor")[1])


LATER = """\
  chunk:
    matrix: {corpus: "${corpora}"}
    cmd: python step.py artifacts/chunk/${item.corpus} artifacts/induce/${item.corpus}
    deps: ["artifacts/parse/${item.corpus}", "artifacts/induce/${item.corpus}"]
    params: [chunking, external, tokens, embedders]
    outs: ["artifacts/chunk/${item.corpus}"]
  label:
    matrix: {corpus: "${corpora}"}
    cmd: python step.py artifacts/label/${item.corpus} artifacts/chunk/${item.corpus}
    deps: ["artifacts/chunk/${item.corpus}"]
    params: [conditions, prefixes.placebo]
    outs: [{"artifacts/label/${item.corpus}": {persist: true}}]
  embed:
    matrix: {corpus: "${corpora}", embedder: "${embedders}"}
    cmd: python step.py artifacts/embed/${item.corpus}/${item.embedder} artifacts/label
    deps: ["artifacts/label/${item.corpus}"]
    params: ["embedders.${item.embedder}"]
    outs: [{"artifacts/embed/${item.corpus}/${item.embedder}": {persist: true}}]
"""
SPLITTER = {"package": "langchain_text_splitters", "callable": "CharacterTextSplitter",
            "version": "1.0", "gives": "strings"}


@pytest.fixture(scope="module")
def embedded_once(ran_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after DVC ran six small stages, up to the vectors."""
    base = tmp_path_factory.mktemp("embedded") / "base"
    shutil.copytree(ran_once, base, symlinks=True)
    (base / "project/dvc.yaml").write_text(STAGES + LATER, encoding="utf-8")
    dvc("repro", "-q", at=base / "project")
    return base


@pytest.fixture
def embedded(embedded_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(embedded_once, tmp_path / "base", symlinks=True)
    monkeypatch.chdir(tmp_path / "base" / "project")
    return Path()


def leave(chunks: int = 2) -> None:
    """What `chunk`, `label` and `embed` leave: documents as chunks, and a vector of each text."""
    its, parsed = params.load(), look(params.load(), "notes", pipeline=pipeline.read(params.load()))
    folder, texts = layout.stage("label", "notes"), [d.body for d in parsed[0].documents]
    rows = [
        {"label": "fixed-none-0", "chunk_id": f"{d.doc_id}:0-{len(d.body)}", "doc_id": d.doc_id,
         "start": 0, "end": len(d.body), "prefix": "", "prefix_tokens": 0,
         "text_sha256": sha256(d.body)}
        for d in parsed[0].documents
    ]
    schemas.write(folder / "labels.parquet", schemas.LABELS, schemas.table(schemas.LABELS, rows))
    cut = {name: {"chunks": chunks} for name in params.SEGMENTATIONS}
    layout.write_report(layout.stage("chunk", "notes") / "report.json", {"segmentations": cut})
    layout.write_report(layout.stage("induce", "notes") / "report.json", {"inducer": "segmenter"})
    texts += [str(q["question"]) for q in QUESTIONS]
    held = schemas.vectors(2)
    schemas.write(layout.cell("embed", "notes", "small") / "vectors.parquet", held, schemas.table(
        held, [{"key": key(its.embedders["small"], text), "tokens": 3, "seen": 9,
                "vector": [1.0, 0.0]} for text in texts]))


@pytest.mark.usefixtures("embedded")
def test_no_stage_that_dvc_would_run_is_called_done() -> None:
    """The property over single edits of params.yaml and of the files of the corpus."""
    def runs() -> set[str]:
        return set(re.findall(r"Running stage '(.+?)'", dvc("repro", "--dry", at=Path())))

    kept, hull = Path("params.yaml").read_bytes(), Path("data/notes/hull.md")
    assert runs() == set()
    assert all(stage.done for stage in pipeline.read(params.load()).stages)
    seen: set[str] = set()
    for place, value in [
        ("chunking.cap_tokens", 120), ("chunking.floor_tokens", 30), ("external.mine", SPLITTER),
        ("inducers.segmenter.section_tokens", 60), ("inducers.segmenter.levels", 2),
        ("embedders.small.max_seq_length", 128), ("conditions.A3.depth", 2),
        ("prefixes.placebo.seed", 1), ("corpora.notes.contexts", True), ("inference.seed", 1),
        (str(hull), HULL + "More.\n"),
        ("data/notes/new.md", RIG + "Other.\n"),
    ]:
        if place.startswith("data/"):
            Path(place).write_text(str(value), encoding="utf-8")
        else:
            change(place, value)
        would = runs()
        left = {s.name for s in pipeline.read(params.load()).stages if not s.done}
        assert would <= left, place
        assert bool(would) == (place != "inference.seed") == bool(left)
        seen |= would
        Path("params.yaml").write_bytes(kept)
        hull.write_text(HULL, encoding="utf-8")
        Path("data/notes/new.md").unlink(missing_ok=True)
    assert seen >= {f"{stage}@notes" for stage in ("parse", "induce", "chunk", "label")}
    assert "embed@notes-small" in seen


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(("place", "value", "counted"), [
    ("chunking.cap_tokens", 120, False), ("inducers.segmenter.section_tokens", 60, False),
    ("external.mine", SPLITTER, True), ("prefixes.placebo.seed", 1, True),
    ("embedders.small.max_seq_length", 128, False),
])
def test_what_comes_after_a_stale_stage_is_unknown_until_it_has_run(
    place: str, value: object, counted: bool, said: Said
) -> None:
    leave(7)
    out = work_lines(said("doctor")[1])
    assert "7 fixed, 7 induced, 7 native (counted)" in out
    assert "induce (segmenter): nothing" in out and "embed small: nothing, all 4 texts" in out
    change(place, value)
    out = said("doctor")[1]
    lines = work_lines(out)
    assert re.search(r"embed small: until `label` has run: at most about (\d+) of \1 texts", lines)
    assert ("7 fixed, 7 induced, 7 native" in lines) is counted
    assert ("until `chunk` has run)" in lines) is (not place.startswith("prefixes"))
    assert "time: at most " in out
    # The segmenter's own settings leave none of its trees as it is.
    some = "2 of 2" if place.startswith("inducers") else "nothing"
    assert f"induce (segmenter): {some}" in lines


@pytest.mark.usefixtures("embedded")
def test_a_stage_that_starts_again_and_finds_all_kept_is_not_called_done(said: Said) -> None:
    leave()
    Path("step.py").write_text(f"{STEP}# edited\n", encoding="utf-8")
    lines = work_lines(said("doctor")[1])
    assert "induce (segmenter): starts again, and all 2 documents are kept" in lines
    assert "embed small: nothing, all 4 texts are done" in lines


@pytest.mark.usefixtures("embedded")
def test_a_corpus_in_which_nothing_is_cut_is_said(said: Said) -> None:
    # 11 and 13 words with their headings, against caps of hundreds: foretold, then counted.
    change("chunking.floor_tokens", 60)
    words = (r"nothing is cut: 2 of 2 documents are shorter than chunking.cap_tokens \(350\), so "
             r"segmentations and routing cannot differ \(median document: 1\d tokens\)")
    out = said("doctor")[1]
    assert re.search(words, out) and status(out, "cutting notes") == "note"
    leave(2)
    assert re.search(words, said("doctor")[1])
    leave(7)
    assert "cutting notes" not in said("doctor")[1]
    change("chunking.cap_tokens", 12)
    change("inducers.segmenter.section_tokens", 6)
    change("chunking.floor_tokens", 2)
    assert "cutting notes" not in said("doctor")[1]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("entry", "found", "words"), [
    ({}, "note", "comes from no distribution"),
    ({"callable": "Halvs"}, "problem", "external.mine.callable: own_cutter has no 'Halvs'; did you "
     "mean 'Halves'?: stage `chunk` would stop"),
    ({"args": {"szie": 3}}, "problem", "external.mine.args: Halves does not take them: TypeError"),
    ({"args": {"size": 0}}, "problem", "does not take them: ValueError: no size"),
    ({"callable": "cut", "args": {"szie": 3}}, "problem", "external.mine.args: cut does not take "
     "them: TypeError: got an unexpected keyword argument 'szie'"),
    ({"callable": "cut", "args": {"size": 3}}, "note", "cut takes `args`"),
    ({"method": "slice"}, "problem", "Halves has no method 'slice'"),
    ({"callable": "Far"}, "note", "could not be made without a connection"),
    ({"version": "2"}, "problem", "external.mine.version: '2', but own_cutter 1 is installed"),
])
def test_a_splitter_that_would_stop_the_stage_is_found_without_a_text(
    entry: dict[str, object], found: str, words: str, said: Said, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own_cutter.py").write_text("""\
import socket
__version__ = "1"
def cut(text, size=2): raise SystemExit("it must get no text")
class Halves:
    def __init__(self, size=2):
        print("packages print")
        if not size: raise ValueError("no size")
    split_text = staticmethod(cut)
class Far:
    def __init__(self):
        for _ in range(1000):
            try: socket.create_connection(("127.0.0.1", 1))
            except Exception: pass
""", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    change("external.mine", {"package": "own_cutter", "callable": "Halves", "version": "1",
                             "gives": "strings", **entry})
    code, out, _ = said("doctor")
    assert status(out, "external mine") == found and code == (found == "problem")
    assert words in out


@pytest.mark.usefixtures("project")
def test_a_colleague_is_sent_to_the_teams_remote_first(said: Said) -> None:
    shutil.rmtree("data")
    first = "name your team's remote first (docs/remotes.md, section 1), then `dvc pull data.dvc`"
    assert first not in said("doctor")[1]  # the default remote is a folder outside
    Path("remote").mkdir()
    dvc("remote", "add", "-d", "bundled", "remote", at=Path())
    out = said("doctor")[1]
    assert first in out.split("corpus notes: ")[1] and "brings it back" not in out


@pytest.mark.usefixtures("ran")
def test_damage_to_an_object_counts_as_its_absence() -> None:
    """A folder's list that names a file which is not there brings nothing back."""
    shutil.rmtree("artifacts/parse")
    (made,) = [p for p in cache.objects(Path(".dvc/cache"))
               if p.suffix != ".dir" and p.read_bytes() == (HULL + RIG).encode()]
    made.unlink()
    assert stands()["parse@notes"] == ("remote", None)


def test_the_command_that_brings_outputs_knows_what_is_bundled() -> None:
    assert cache.pulling(["handbook"], "bundled") == "make pull"
    assert cache.pulling([]) == "dvc pull --allow-missing"
    assert cache.pulling(["notes", None]) == "dvc pull --allow-missing"
    both = "make pull; dvc pull -r far --allow-missing"
    assert cache.pulling(["notes", "handbook"], "far") == both


@pytest.mark.usefixtures("project")
def test_without_data_nothing_is_forecast_and_the_command_is_named(said: Said) -> None:
    shutil.rmtree("data")
    code, out, _ = said("doctor")
    assert code == 1 and status(out, "time") == "note" and "under 1 s" not in out
    assert "time: nothing can be forecast: notes could not be read\n" in out
    assert "-> `dvc pull data.dvc` brings it back" in out.split("time: ")[1]
    settings = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = {"handbook": {"reader": "markdown", "path": "data/handbook"}}
    write_params(Path(), settings)
    Path("Makefile").touch()
    assert "-> make pull; then `spanwise doctor` again\n" in said("doctor")[1].split("time: ")[1]


@pytest.mark.usefixtures("project")
def test_every_stage_that_runs_has_its_start_up() -> None:
    """22 stages of two embedders less 4 of the second; each takes START starts of Python."""
    read = pipeline.read(params.load())
    seen, _ = look(params.load(), "notes", pipeline=read)
    its = machine.Machine(2, 2, None, 10**9, start=0.5)
    made = estimates.estimate(params.load(), seen, its, {384: 1e9}.__getitem__, read)
    rest = next(work for work in made.work if work.stage == "start-up and tables")
    assert rest.of == rest.left == 17
    assert rest.seconds == pytest.approx(17 * estimates.START * 0.5 + 2 * estimates.EACH_S)
    assert rest.memory > 0
    assert estimates.ending(read, its) == estimates.ENDING * 0.5
    assert 0.05 < machine.starting() < 60


@pytest.mark.usefixtures("project")
def test_several_lines_of_one_finding_stand_below_each_other(said: Said) -> None:
    write_questions(Path(), [{**QUESTIONS[0], "anchors": [{"quote": "no such words"}]}])
    lines = said("doctor")[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("problem corpus notes"))
    assert "no such words" in lines[first]
    assert re.match(r" {10,}quote: ", lines[first + 1])  # the nearest text, ready to paste


@pytest.mark.usefixtures("project")
def test_a_folder_without_stages_is_a_problem(said: Said) -> None:
    Path("dvc.yaml").unlink()
    code, out, _ = said("doctor")
    assert code == 1 and "no dvc.yaml here" in out


def test_a_damaged_object_of_the_bundled_corpus_comes_back_by_make_pull(tmp_path: Path) -> None:
    """A person's own default remote has none of it, so a plain `dvc pull` would bring nothing."""
    path = tmp_path / "cache/files/md5/ab" / ("0" * 30)
    path.parent.mkdir(parents=True)
    path.write_text("damaged", encoding="utf-8")
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump({"stages": {"induce@handbook": {"outs": [
        {"path": "artifacts/induce/handbook/report.json", "md5": "ab" + "0" * 30}]}}}))
    found = next(iter(cache.check(tmp_path / "cache", tmp_path)))
    assert found.status == "problem" and found.mend.startswith("`make pull` fetches")


@pytest.mark.usefixtures("project")
def test_a_stage_of_a_persons_own_does_not_stop_the_check(said: Said) -> None:
    told = yaml.safe_load(Path("dvc.yaml").read_text(encoding="utf-8"))
    told["stages"]["mine"] = {"foreach": [1, 2], "do": {"cmd": "echo ${item}"}}
    told["stages"]["ours"] = {"matrix": {"seed": [1, 2]}, "cmd": "echo ${item.seed}"}
    told["stages"]["last"] = {"cmd": "echo", "params": [{"other.yaml": ["a"]}]}
    Path("dvc.yaml").write_text(yaml.safe_dump(told, sort_keys=False), encoding="utf-8")
    assert said("doctor")[0] == 0
    named = {stage.name for stage in pipeline.read(params.load()).stages}
    assert "last" in named and not named & {"mine", "ours@1"}

"""`spanwise add` in real clones: all of it or nothing, nothing private in the bundled remote."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from spanwise import layout, params, profiles, schemas
from spanwise.adding import asked, door, looking, stopping, tracked, undone
from spanwise.cli import main
from spanwise.errors import InputError, QuestionError, Unavailable

from . import small_files
from .conftest import ROOT

HULL = "# Hull\n\nThe keel weighs 410 kg.\n\n## Paint\n\nIt dries in 12 hours.\n"
CSV = (
    "question,document,quote,type\n"
    "How heavy?,hull one.md,410 kg,factoid\n"
    "How long?,rümpf,12 h,\n"
)
Add = Callable[..., tuple[int, str, str]]


def run(*command: str, at: Path) -> str:
    found = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False,
                           stdin=subprocess.DEVNULL)
    assert found.returncode == 0, found.stderr + found.stdout
    return found.stdout


def dvc(*arguments: str, at: Path) -> str:
    return run(sys.executable, "-m", "dvc", *arguments, at=at)


def digest(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone, not pulled, of a project with one bundled corpus in a remote that git tracks."""
    base = tmp_path_factory.mktemp("origin")
    origin = base / "project"
    (origin / "data" / "handbook").mkdir(parents=True)
    (origin / "data" / "handbook" / "a.md").write_text("Bundled.\n", encoding="utf-8")
    shutil.copy(ROOT / "params.yaml", origin)
    run("git", "init", "-q", at=origin)
    dvc("init", "-q", at=origin)
    shutil.copy(ROOT / ".dvc" / "config", origin / ".dvc")
    dvc("add", "-q", "data", at=origin)
    dvc("push", "-q", at=origin)
    run("git", "add", "-A", at=origin)
    run("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x", at=origin)
    run("git", "clone", "-q", str(origin), str(base / "clone"), at=base)
    assert not (base / "clone" / "data").exists()
    return base / "clone"


@pytest.fixture
def project(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the clone, to work in."""
    root = tmp_path / "work" / "project"
    shutil.copytree(clone, root)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as far as the checks look at it: nothing of it runs DVC but `remote list`."""
    root = tmp_path / "work" / "bare"
    (root / ".dvc").mkdir(parents=True)
    (root / ".git").mkdir()
    shutil.copy(ROOT / ".dvc" / "config", root / ".dvc")
    shutil.copy(ROOT / "params.yaml", root)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with two documents, beside the project."""
    folder = tmp_path / "my notes"
    folder.mkdir()
    (folder / "hull one.md").write_text(HULL, encoding="utf-8")
    (folder / "rümpf.md").write_text("It dries in 12 h.\n", encoding="utf-8")
    (folder / "photo.png").write_bytes(b"\x89PNG\x00")
    return folder


@pytest.fixture
def add(capsys: pytest.CaptureFixture[str]) -> Add:
    def said(*arguments: str | Path) -> tuple[int, str, str]:
        code = main(["add", *map(str, arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return said


def refused(add: Add, *arguments: str | Path, code: int = 2) -> str:
    """The message of a refusal that wrote nothing."""
    before = digest(Path.cwd())
    got, _, said = add(*arguments)
    assert got == code, said
    assert digest(Path.cwd()) == before
    return said


@pytest.mark.slow
def test_from_an_unpulled_clone_to_parsed_questions(
    project: Path, notes: Path, add: Add, tmp_path: Path
) -> None:
    asked = tmp_path / "asked.csv"
    asked.write_text(CSV, encoding="utf-8")
    bundled, settings = digest(project / "remote"), (project / "params.yaml").read_text("utf-8")
    code, out, err = add("notes", notes, "--questions", asked)
    assert code == 0, err
    assert out.rstrip().endswith("next: dvc repro")
    assert "'photo.png'" in err and "2 documents: intervals" in err
    # The bundled corpus is still there, and tracked.
    assert (project / "data" / "handbook" / "a.md").read_text("utf-8") == "Bundled.\n"
    assert yaml.safe_load((project / "data.dvc").read_text("utf-8"))["outs"][0]["nfiles"] == 4
    # The settings gained six lines and lost nothing.
    after = (project / "params.yaml").read_text("utf-8").splitlines()
    gained = ["  notes:", "    reader: markdown", "    path: data/notes", "    inducer: segmenter"]
    place = after.index("  notes:")
    assert after[place : place + 4] == gained
    assert after[:place] + after[place + 4 :] == settings.splitlines()
    # What is private goes to a place of its own: `dvc push` leaves the bundled remote alone.
    dvc("push", at=project)
    assert digest(project / "remote") == bundled
    own = tmp_path / "work" / "project-remote"
    assert "verify = true" in (project / ".dvc" / "config.local").read_text(encoding="utf-8")
    texts = {path.read_bytes() for path in own.rglob("*") if path.is_file()}
    assert HULL.encode() in texts
    status = run("git", "status", "--porcelain", at=project).split("\n")
    assert sorted(filter(None, status)) == [" M data.dvc", " M params.yaml"]
    # And the stage reads it, ids percent-encoded, evidence where it stands.
    runpy.run_path(str(ROOT / "stages" / "parse.py"))["main"]("notes")
    rows = schemas.read(layout.parse("notes") / "anchors.parquet", schemas.ANCHORS).to_pylist()
    assert [(row["doc_id"], row["quote"]) for row in rows] == [
        ("hull%20one", "410 kg"), ("r%C3%BCmpf", "12 h"),
    ]
    # A clone of a colleague pulls all of it from there.
    second = tmp_path / "work" / "second"
    shutil.copytree(project, second, ignore=shutil.ignore_patterns("data", "cache", "tmp"))
    dvc("pull", "-q", at=second)
    assert digest(second / "data") == digest(project / "data")


@pytest.mark.slow
def test_a_second_corpus_keeps_the_remote_and_the_first(
    project: Path, notes: Path, add: Add, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere"
    assert add("first", notes, "--remote", place)[0] == 0
    (tmp_path / "b.pdf").write_bytes(small_files.pdf([[(72, 700, 11, "The mast is 14 m.")]]))
    code, out, err = add("second", tmp_path / "b.pdf", "--questions", "written", "--units",
                         "--inducer", "hybrid", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["remote"] == {"name": "own", "url": str(place), "new default": False}
    assert (facts["reader"], facts["documents"], facts["done"]) == ("folder", 1, True)
    corpora = params.load().corpora
    assert list(corpora) == ["handbook", "first", "second"]
    second = corpora["second"]
    assert (second.questions, second.units, second.inducer) == ("written", True, "hybrid")
    assert {p.name for p in (project / "data").iterdir()} == {"handbook", "first", "second"}
    assert dvc("status", "data.dvc", at=project).strip().endswith("up to date.")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["use", "add"])
def test_what_fails_in_the_middle_leaves_all_as_it_was(
    project: Path, notes: Path, add: Add, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    dvc("pull", "-q", at=project)
    before = {path: (project / path).read_bytes() for path in ("params.yaml", "data.dvc")}
    real = getattr(tracked, stage)

    def breaks(*arguments: object) -> None:
        real(*arguments)  # it did its work, and then the disk is full
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tracked, stage, breaks)
    code, _, err = add("notes", notes)
    assert (code, "No space left" in err) == (1, True)
    assert {path: (project / path).read_bytes() for path in before} == before
    assert not (project / tracked.LOCAL).exists()
    assert [path.name for path in (project / "data").iterdir()] == ["handbook"]
    assert not list((project / ".dvc" / "tmp").glob("adding-*"))
    monkeypatch.undo()
    os.chdir(project)
    assert add("notes", notes)[0] == 0  # and nothing is in the way


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_what_others_write_meanwhile_is_theirs(
    project: Path, notes: Path, add: Add, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    fails: bool,
) -> None:
    """In settings that are edited while DVC runs, and in a cache that several projects share."""
    dvc("pull", "-q", at=project)
    dvc("cache", "dir", "--local", str(tmp_path / "shared"), at=project)
    dvc("add", "-q", "data", at=project)
    before = {path: (project / path).read_bytes() for path in (tracked.POINTER, tracked.LOCAL)}
    real = tracked.add

    def busy(root: Path) -> None:
        real(root)
        for name in ("params.yaml", ".gitignore"):
            with (root / name).open("a", encoding="utf-8") as file:
                file.write("# mine\n")
        if fails:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tracked, "add", busy)
    settings = (project / "params.yaml").read_text("utf-8")
    code, _, err = add("notes", notes)
    assert code == (1 if fails else 2), err
    assert fails or "params.yaml has changed meanwhile; run `spanwise add` again" in err
    assert "undoing what was done of notes" in err
    for name in ("params.yaml", ".gitignore"):
        assert f"{name} was changed meanwhile, not by this command, and stays as it is" in err
        assert (project / name).read_text("utf-8").endswith("# mine\n")
    assert (project / "params.yaml").read_text("utf-8") == settings + "# mine\n"
    assert {path: (project / path).read_bytes() for path in before} == before
    assert not (project / "data" / "notes").exists()
    shared = {path.read_bytes() for path in (tmp_path / "shared").rglob("*") if path.is_file()}
    assert HULL.encode() in shared  # a colleague may have added it too
    assert "lies outside the project and others may use what it holds" in err


@pytest.mark.parametrize(("name", "before", "now", "its_own"), [
    ("data.dvc", "outs:\n- md5: a.dir\n  size: 1\n  path: data\n",
     "outs:\n- md5: b.dir\n  size: 2\n  path: data\n", True),
    ("data.dvc", "outs:\n- md5: a.dir\n  path: data\n", "outs:\n- m", True),
    ("data.dvc", "outs:\n- md5: a.dir\n  path: data\n", None, True),
    ("data.dvc", None, "outs:\n- md5: a.dir\n  path: data\ndesc: mine\n", False),
    (".gitignore", "*.tmp", "*.tmp\n/data\n", True),
    (".gitignore", None, "/data\n/data-of-mine\n", False),
    (".dvc/config.local", "# theirs\n[core]\nremote = x\n",
     "[core]\n    remote = own\n['remote \"own\"']\n    url = /a, b\n    verify = true\n", True),
    (".dvc/config.local", "[core]\n    remote = own\n", "[core]\n    remote = mine\n", False),
    (".dvc/config.local", None, "['remote \"mine\"']\n    url = /a\n", False),
])
def test_lines_that_dvc_writes_are_told_from_others(
    name: str, before: str | None, now: str | None, its_own: bool
) -> None:
    contents = (None if text is None else text.encode() for text in (before, now))
    assert tracked.wrote(Path(name), *contents) == its_own


@pytest.mark.slow
def test_who_asks_again_while_it_is_undone_waits(project: Path, notes: Path) -> None:
    dvc("pull", "-q", at=project)
    before = state(project)
    script = f"""
import os, shutil, signal, sys
from spanwise.adding import tracked, undone
from spanwise.cli import main
add, remove = tracked.add, shutil.rmtree
def interrupted(root):
    add(root)
    os.kill(os.getpid(), signal.SIGINT)
def again(path, **options):
    if str(path).endswith("data/notes"):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    remove(path, **options)
tracked.add, undone.shutil.rmtree = interrupted, again
sys.exit(main(["add", "notes", {str(notes)!r}]))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert found.returncode != 0
    assert found.stderr.count("note: what was done of notes is being undone; wait") == 2
    assert state(project) == before, found.stderr


@pytest.fixture
def asked_to_end() -> Iterator[None]:
    """Signals as a terminal has them: whoever runs the tests in the background ignores Ctrl-C."""
    plain = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL,
             signal.SIGHUP: signal.SIG_DFL}
    former = {number: signal.signal(number, handler) for number, handler in plain.items()}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("asked_to_end")
def test_signals_wait_and_then_have_their_effect(capfd: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    whole = False
    with pytest.raises(SystemExit) as stop, stopping.unwinding():
        with stopping.held("it is tidied up"):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            whole = True
        raise AssertionError("the signal was lost")
    assert (whole, stop.value.code) == (True, 128 + signal.SIGTERM)
    assert "note: it is tidied up; wait until it has ended" in capfd.readouterr().err
    with pytest.raises(KeyboardInterrupt), stopping.held():
        signal.raise_signal(signal.SIGINT)
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with stopping.unwinding(), stopping.held():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, former)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def state(project: Path) -> dict[str, str]:
    """All that an add may change: by path, what git sees, what DVC keeps, its own settings."""
    return {
        name: content for name, content in digest(project).items()
        if not name.startswith((".git/", ".dvc/tmp/")) or "/adding-" in name
    }


def limited() -> None:
    """What stands for a full disk: no file may be longer."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))


@pytest.mark.slow
def test_a_file_that_dvc_does_not_take_in_is_noticed(project: Path) -> None:
    """DVC says so and ends with 0."""
    dvc("pull", "-q", at=project)
    (project / "data" / "long.txt").write_text("A word. " * 100_000, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "-c", "from pathlib import Path\nfrom spanwise.adding import tracked\n"
         "try:\n    tracked.add(Path())\nexcept tracked.Unavailable as error:\n    print(error)"],
        cwd=project, capture_output=True, text=True, check=True, preexec_fn=limited,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert "1 of its files did not come into DVC's cache" in found.stdout
    assert "e.g. long.txt: failed to transfer" in found.stdout
    tracked.add(project)


@pytest.mark.slow
def test_a_disk_without_room_for_the_copy(project: Path, notes: Path) -> None:
    dvc("pull", "-q", at=project)
    (notes / "long.txt").write_text("A word. " * 100_000, encoding="utf-8")
    before = state(project)
    found = subprocess.run(
        [sys.executable, "-m", "spanwise.cli", "add", "notes", str(notes)], cwd=project,
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        preexec_fn=limited,
    )
    assert found.returncode == 1
    assert f"error: {project}: File too large; make room and run it again" in found.stderr
    assert state(project) == before


@pytest.mark.slow
@pytest.mark.parametrize(("number", "until"), [
    (signal.SIGINT, "data.dvc"), (signal.SIGTERM, "data/notes"),
    (signal.SIGKILL, "config.local"), (signal.SIGKILL, "data.dvc"),
])
def test_an_add_that_is_stopped_leaves_all_as_it_was_or_says_the_mend(
    project: Path, notes: Path, add: Add, number: signal.Signals, until: str
) -> None:
    dvc("pull", "-q", at=project)
    before, pointer = state(project), (project / "data.dvc").read_bytes()
    reached: dict[str, Callable[[], bool]] = {
        "config.local": (project / tracked.LOCAL).exists,
        "data/notes": (project / "data" / "notes").exists,
        "data.dvc": lambda: (project / "data.dvc").read_bytes() not in (b"", pointer),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "spanwise.cli", "add", "notes", str(notes)], cwd=project,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        start_new_session=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while process.poll() is None and not reached[until]():
        time.sleep(0.001)
    # A terminal interrupts the whole group, DVC too; the others are meant for the one process.
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(60) != 0, "it had ended before it could be stopped"
    said = (process.stdout or sys.stdin).read()
    if number != signal.SIGKILL:
        assert state(project) == before, said
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # DVC, if it runs on alone
        if (project / "data" / "notes").exists():
            said = refused(add, "others", notes)
            assert "was killed when it had copied this" in said
            mend = said.splitlines()[-1].replace("dvc", f"{sys.executable} -m dvc", 1)
            run("bash", "-c", mend, at=project)
            assert (project / "data.dvc").read_bytes() == pointer
    assert add("notes", notes)[0] == 0
    assert not list((project / ".dvc" / "tmp").glob("adding-*"))
    assert dvc("status", "data.dvc", at=project).strip().endswith("up to date.")


def test_data_that_dvc_does_not_know_are_not_overwritten(
    project: Path, notes: Path, add: Add
) -> None:
    (project / "data" / "by-hand").mkdir(parents=True)
    (project / "data" / "by-hand" / "x.md").write_text("mine\n", encoding="utf-8")
    code, _, err = add("notes", notes)
    assert (code, "record them with `dvc add data`" in err) == (2, True), err
    assert (project / "data" / "by-hand" / "x.md").exists()
    assert not (project / "data" / "notes").exists()


def test_bundled_data_that_cannot_be_had_are_not_dropped(
    project: Path, notes: Path, add: Add
) -> None:
    shutil.rmtree(project / "remote" / "files")
    pointer = (project / "data.dvc").read_bytes()
    code, _, err = add("notes", notes)
    assert (code, "adding to it now would drop it" in err) == (3, True)
    assert (project / "data.dvc").read_bytes() == pointer
    assert not (project / "data" / "notes").exists()


def test_a_dry_run_writes_nothing_and_tells_all(bare: Path, notes: Path, add: Add) -> None:
    before = digest(bare)
    code, out, _ = add("notes", notes, "--dry-run")
    assert (code, digest(bare)) == (0, before)
    assert f"own: {bare.parent / 'bare-remote'}" in out
    assert "questions: written" in out and "spanwise ask notes --worksheet notes.yaml" in out
    assert not (bare / ".dvc" / "tmp" / "adding").exists()


def test_one_at_a_time(bare: Path, notes: Path, add: Add) -> None:
    lock = bare / ".dvc" / "tmp" / "adding.lock"
    lock.parent.mkdir()
    with lock.open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another `spanwise add` runs in this project" in refused(add, "notes", notes)
        # What it has copied by now is not taken for what one left that was killed.
        note = lock.parent / "adding-x" / "corpus"
        note.parent.mkdir()
        note.write_text("others", encoding="utf-8")
        (bare / "data" / "others").mkdir(parents=True)
        said = refused(add, "notes", notes, "--dry-run")
        assert "another `spanwise add` runs" in said and "rm -r" not in said
    assert "rm -r data/others && dvc add data" in refused(add, "notes", notes)


def test_who_only_looks_around_keeps_no_add_from_running(bare: Path) -> None:
    with undone.scratch(bare, "notes"):
        pass
    looking_around = undone.none_running(bare)
    looking_around.__enter__()
    later = threading.Timer(0.3, looking_around.__exit__, (None, None, None))
    later.start()
    with undone.scratch(bare, "notes") as folder:
        assert folder.is_dir() and not later.is_alive()


def test_names_and_places(bare: Path, notes: Path, add: Add) -> None:
    assert "lower-case letters" in refused(add, "My_Notes", notes)
    assert "is in params.yaml already, at data/handbook" in refused(add, "handbook", notes)
    assert "no such file or folder" in refused(add, "notes", notes / "none")
    assert "the project itself lies in it" in refused(add, "notes", bare.parent)
    assert f"lies inside {bare}" in refused(add, "notes", notes, "--remote", "remote")
    assert "expected one of markdown" in refused(add, "notes", notes, "--reader", "word")
    assert "corpora.notes.inducer: expected" in refused(add, "notes", notes, "--inducer", "me")
    (bare / "data" / "notes").mkdir(parents=True)
    assert "an earlier `spanwise add` was killed" in refused(add, "notes", notes)
    assert "move it out" in refused(add, "other", bare / "data" / "notes")


def test_the_remote_lies_beside_all_that_git_tracks(bare: Path) -> None:
    (bare / ".git").rename(bare.parent / ".git")  # the project is a part of a larger repository
    top = bare.parent
    assert tracked.remote(bare, None) == tracked.Remote(
        "own", str(top.parent / f"{top.name}-remote"), made=True, known=False
    )
    with pytest.raises(InputError, match=f"lies inside {top}"):
        tracked.remote(bare, "../beside")
    assert tracked.remote(bare, "s3://bucket/x").url == "s3://bucket/x"


@pytest.mark.parametrize(("text", "says"), [
    ("corpora: [", "params.yaml is not YAML"), ("corpora: 3\n", "corpora: expected a mapping"),
    ("- a\n", "expected a mapping"),
])
def test_settings_edited_into_nonsense(
    bare: Path, notes: Path, add: Add, text: str, says: str
) -> None:
    (bare / "params.yaml").write_text(text, encoding="utf-8")
    said = refused(add, "notes", notes)
    assert says in said and "git diff params.yaml" in said


@pytest.mark.parametrize("text", ["outs: [", "", "outs: 3\n", "outs:\n- {md5: x, path: data}\n"])
def test_a_pointer_that_is_none_is_not_written_over(
    bare: Path, notes: Path, add: Add, text: str
) -> None:
    (bare / "data.dvc").write_text(text, encoding="utf-8")
    assert "data.dvc: not what DVC writes" in refused(add, "notes", notes)


@pytest.mark.usefixtures("bare")
def test_every_file_that_cannot_be_taken_is_told(tmp_path: Path, add: Add) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    files: dict[str, bytes] = {
        "good.md": b"Fine.\n", "binary.txt": b"\x00\x01\xff", "empty.md": b"",
        "scan.pdf": small_files.pdf([[]]), "locked.pdf": small_files.pdf([[]], encrypted=True),
        "no.docx": b"zip?", "fence.md": b"```\nopen\n", "latin.html": b"<p>\xe9",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    said = refused(add, "bad", folder)
    assert "7 files cannot be taken" in said and "leave them out with --skip" in said
    for name in files.keys() - {"good.md"}:
        assert name in said
    code, out, err = add("bad", folder, "--skip", "--dry-run", "--json")
    assert code == 0
    assert json.loads(out)["left out"].keys() == files.keys() - {"good.md"}
    assert "note: left out: scan.pdf: no text on its pages (1)" in err
    (folder / "manifest.yaml").write_text(
        "".join(f"- {{path: {name}}}\n" for name in files), encoding="utf-8")
    assert "close them in manifest.yaml" in refused(add, "bad", folder, "--skip")


@pytest.mark.usefixtures("bare")
def test_links_and_names_that_are_no_names(notes: Path, tmp_path: Path, add: Add) -> None:
    (tmp_path / "secret.md").write_text("secret\n", encoding="utf-8")
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    (notes / "up").symlink_to(tmp_path)
    (notes / "two\nlines.md").write_text("x\n", encoding="utf-8")
    Path(os.fsdecode(os.fsencode(notes) + b"/\xff.md")).write_text("x\n", encoding="utf-8")
    said = refused(add, "notes", notes)
    assert said.count("a link that leaves the folder") == 2
    assert "the name holds U+000A" in said and "the name is not UTF-8" in said
    assert "4 files cannot be taken" in said


@pytest.mark.usefixtures("bare")
def test_a_huge_file_is_refused_before_it_is_read(notes: Path, add: Add) -> None:
    with (notes / "huge.txt").open("wb") as file:
        file.truncate(65 * 2**20)
    assert "huge.txt: 65 MB, expected at most 64 MB" in refused(add, "notes", notes)


@pytest.mark.usefixtures("bare")
def test_of_one_text_the_first_is_taken_or_the_one_that_is_asked_about(
    notes: Path, add: Add, tmp_path: Path
) -> None:
    (notes / "copy.md").write_text(HULL, encoding="utf-8")
    _, out, err = add("notes", notes, "--dry-run", "--json")
    assert json.loads(out)["duplicates"] == {"copy.md": ["hull one.md"]}
    assert "copy.md alone is taken" in err
    asked = tmp_path / "asked.csv"
    asked.write_text(CSV, encoding="utf-8")
    _, out, _ = add("notes", notes, "--questions", asked, "--dry-run", "--json")
    assert json.loads(out)["duplicates"] == {"hull one.md": ["copy.md"]}
    asked.write_text(CSV + "Which?,copy,410 kg,\n", encoding="utf-8")
    said = refused(add, "notes", notes, "--questions", asked)
    assert "copy.md and hull one.md have the same text, and questions are about both" in said


@pytest.mark.usefixtures("bare")
def test_without_questions_the_printed_commands_lead_to_some(notes: Path, add: Add) -> None:
    code, out, _ = add("notes", notes, "--dry-run")
    assert code == 0 and "It has no questions yet" in out
    commands = re.findall(r"^    ((?:spanwise|dvc) .*)$", out, re.M)
    assert commands == [
        "dvc repro parse@notes", "spanwise ask notes --dry-run", "dvc repro ask@notes",
        "dvc repro parse@notes", "spanwise ask notes --worksheet notes.yaml",
    ]
    # The line as it is printed, below the entry as it is written.
    made = door.plan(door.Wish("notes", notes))
    entry = made.text.replace("  notes:\n", "  notes:\n    questions: written\n")
    Path("params.yaml").write_text(entry, encoding="utf-8")
    assert params.load().corpora["notes"].questions == "written"
    assert out.rstrip().endswith("next: dvc repro parse@notes")


EXPECTED = "expected `question`, `document` and `quote`, or in its place `start` and `end`, or"


@pytest.mark.parametrize(("name", "text", "says"), [
    ("q.csv", CSV.replace("410 kg", "410 kq"), 'row 1 (line 2), q0001, anchor 0: `quote` "410 kq" '
     "does not occur in hull one; the nearest text, line 3"),
    ("q.csv", "document,quote\nx,y\n",
     f"no column `question`, found 'document', 'quote'; {EXPECTED}"),
    ("q.csv", "Question,Document\nx,y\n", "no column of evidence, found 'Question', 'Document'; "),
    ("q.csv", "a\nb\n", "no column `question` and none `document` and none of evidence, found 'a'"),
    ("q.csv", "question,document,start,end\nWhat?,hull one,a,9\n", "`start` is 'a', expected a wh"),
    ("q.csv", "question,document,quote\nWhat?,hull\n", "row 1 (line 2): 2 fields, expected 3"),
    ("q.csv", "question,document,quote\nWhat?,hull,a,b\n", "row 1 (line 2): 4 fields, expected 3"),
    ("q.csv", 'question,document,quote\na,hull one,410 kg\nb,"c" d,e\n', "q.csv: line 3: "),
    ("q.csv", "question,quote\n" + "What?,410 kg\n" * 30,
     f"q.csv: no column `document`, found 'question', 'quote'; {EXPECTED}"),
    ("q.csv", "question,document,quote\nWhat?,Hul One.MD,410 kg\n",
     "document 'Hul One.MD' is no document of this corpus; the nearest name is 'hull one'"),
    ("q.csv", "question,Quote,quote\n", "column 'quote' stands twice"),
    ("q.csv", "", "q.csv: no question in it; write at least one, or leave it out: with --quest"),
    ("q.csv", "question,document,quote\n", "no question in it"),
    ("q.yaml", "[]\n", "no question in it"),
    ("q.jsonl", '{"question": "What?"}\n{"a"\n', "entry 2 (line 2)"),
    ("q.jsonl", '{"question": "a", "quote": "410 kg"}\n' * 30,
     "q.jsonl: no `document` in any entry, and the corpus has 2 ('hull one', 'rümpf'); name"),
    ("q.jsonl", '{"text": "a", "query": "b", "file": "x"}\n', "'query' and 'text' say the same"),
    ("q.yaml", "question: x\n", "expected one list of entries"),
    ("q.yaml", "- {question: What, document: hull one, quote: 410 kg, anchors: [{quote: x}]}\n",
     "'anchors' and 'quote' both give evidence"),
    ("q.txt", "What?\n", "expected questions as .jsonl"),
])
@pytest.mark.usefixtures("bare")
def test_question_files_that_are_wrong(
    notes: Path, add: Add, tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    said = refused(add, "notes", notes, "--questions", tmp_path / name)
    assert says in said
    if "nearest text" not in said:
        assert said.count("\n") == 1


@pytest.mark.usefixtures("bare")
def test_the_command_for_another_encoding_finds_the_file(
    notes: Path, add: Add, tmp_path: Path
) -> None:
    asked = tmp_path / "my questions.csv"
    asked.write_bytes(CSV.encode("latin-1"))
    said = refused(add, "notes", notes, "--questions", asked)
    command = re.search(r"iconv .*?'.*?'", said)
    assert command is not None
    fixed = run("bash", "-c", command[0], at=Path("/"))
    assert fixed == CSV


@pytest.mark.usefixtures("bare")
def test_wrong_files_rows_and_quotations_are_told_in_one_run(
    notes: Path, add: Add, tmp_path: Path
) -> None:
    (notes / "empty.md").write_bytes(b"")
    asked = tmp_path / "asked.csv"
    asked.write_text(
        CSV.replace("410 kg", "410 kq") + "Which?,hull one,a,b,c\nWhat?,empty.md,x,\n",
        encoding="utf-8",
    )
    said = refused(add, "notes", notes, "--questions", asked)
    for part in ("empty.md: no text in it", "--skip", "2 entries of the questions are wrong",
                 '"410 kq"', "row 3 (line 4): 5 fields"):
        assert part in said
    # Without the wrong ones: questions about a file that is left out are left out with it.
    asked.write_text(CSV + "What?,empty.md,x,\n", encoding="utf-8")
    code, _, err = add("notes", notes, "--questions", asked, "--skip", "--dry-run")
    assert code == 0 and "left out: 1 question, about files that are" in err
    made = door.plan(door.Wish("notes", notes, str(asked), skip=True))
    assert made.facts["questions"] == 2 and (made.questions or "").count("\n") == 2
    (notes / "questions.yaml").write_text(
        "- {id: a, document: empty, question: What, anchors: [{quote: x}]}\n", encoding="utf-8")
    said = refused(add, "notes", notes, "--skip")
    assert "1 question of the folder's own need a file that cannot be read" in said


def test_a_wrong_entry_takes_its_rewordings_along_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    bad = '"question": "a?", "query": "b?", "quote": "x"}\n'
    reworded = '{"id": "r", "question": "aa?", "base": "%s"}\n'
    others = '{"question": "c?", "quote": "y"}\n{"question": "d?", "quote": "z"}\n'
    for first, base, kept in (
        ("{", "q0002", ["q0002", "q0003", "r"]), ("{", "q0001", ["q0002", "q0003"]),
        ('{"id": null, ', "q0002", ["q0002", "q0003", "r"]),
        ('{"id": "b", ', "b", ["q0002", "q0003"]),
        ('{"question_id": "b", ', "b", ["q0002", "q0003"]),
        ('{"id": "None", ', "None", ["q0002", "q0003"]),
    ):
        path.write_text(first + bad + others + reworded % base, encoding="utf-8")
        errors: list[QuestionError] = []
        items, _ = asked.entries(path, ["one"], errors)
        assert [item.fields["id"] for item in items] == kept
        assert len(errors) == 1 and "'question' and 'query' say the same" in str(errors[0])


@pytest.mark.parametrize(("file", "words"), [("NFD", "NFC"), ("NFC", "NFD")])
@pytest.mark.usefixtures("bare")
def test_names_and_quotations_are_the_same_in_either_normalization(
    tmp_path: Path, file: str, words: str
) -> None:
    def form(text: str, to: str) -> str:
        return unicodedata.normalize(to, text)  # type: ignore[arg-type]

    folder = tmp_path / "notes"
    folder.mkdir()
    text = form("Im Bootshaus hängt das Öl. Über dem Tor auch.\n", file)
    (folder / form("Über Öl.md", file)).write_text(text, encoding="utf-8")
    (folder / "b.md").write_text("b\n", encoding="utf-8")
    (tmp_path / "q.csv").write_text(form(
        " Question , DOCUMENT,Quote\nWo?,Über Öl.md,hängt das Öl\nWas?,Über Öl,\u00dcber\n", words
    ), encoding="utf-8")
    made = door.plan(door.Wish("notes", folder, str(tmp_path / "q.csv")))
    (folder / door.QUESTIONS).write_text(made.questions or "", encoding="utf-8")
    from spanwise.corpora.readers import read_split

    found = [question.evidence[0] for question in
             read_split("markdown", folder, options={}).questions]
    assert [text[one.start : one.end] for one in found] == [
        form("hängt das Öl", file), form("Über", file)
    ]


@pytest.mark.parametrize(("name", "text"), [
    ("q.csv", "\ufeffid;question;document;quote;start;end\r\na;What?;hull one;410 kg;;\r\n"
              "a;;rümpf;;3;8\r\n"),
    ("q.jsonl", '{"question_id": "a", "doc_id": "hull%20one", "text": "What?", "evidence": '
                '[{"start": 24, "end": 30}, {"doc_id": "r%C3%BCmpf", "start": 3, "end": 8}]}'),
    ("q.yaml", "- id: a\n  document: hull one\n  question: What?\n  anchors:\n"
               "    - 410 kg\n    - {document: rümpf.md, start: 3, end: 8}\n"),
])
@pytest.mark.usefixtures("bare")
def test_questions_come_as_csv_json_lines_or_yaml(
    notes: Path, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    made = door.plan(door.Wish("notes", notes, str(tmp_path / name)))
    (notes / door.QUESTIONS).write_text(made.questions or "", encoding="utf-8")
    from spanwise.corpora.readers import read_split

    corpus = read_split("markdown", notes, options={})
    (question,) = corpus.questions
    raw = {document.doc_id: document.raw or "" for document in corpus.documents}
    assert (question.question_id, question.text, question.bundles) == ("a", "What?", ((0, 1),))
    assert [raw[e.doc_id][e.start : e.end] for e in question.evidence] == ["410 kg", "dries"]


@pytest.mark.usefixtures("bare")
def test_the_reader_is_the_one_that_the_files_tell(tmp_path: Path) -> None:
    qasper = {"p": {"title": "T", "abstract": "A.", "full_text": [], "qas": []}}
    beir_rows = {"corpus.jsonl": '{"_id": "d", "text": "x"}', "queries.jsonl":
                 '{"_id": "q", "text": "x?"}', "qrels/test.tsv":
                 "query-id\tcorpus-id\tscore\nq\td\t1\n"}
    snippet = {"query": "x?", "snippets": [{"file_path": "a.txt", "span": [0, 1]}]}
    kinds: dict[str, dict[str, str]] = {
        "markdown": {"a.md": "x"}, "text": {"a.txt": "x", "b/c.TXT": "y"},
        "folder": {"a.md": "x", "b.html": "<p>x y"}, "qasper": {"a.json": json.dumps(qasper)},
        "mediawiki": {"d.xml": "<mediawiki/>"},
        "beir": beir_rows, "snippets": {"a.txt": "x", "s.json": json.dumps([snippet])},
        "chroma": {"corpora/a.md": "fact", "questions_df.csv": 'question,references,corpus_id\n'
                   'x?,"[{""content"": ""fact"", ""start_index"": 0, ""end_index"": 4}]",a\n'},
    }
    for reader, files in kinds.items():
        for name, text in files.items():
            path = tmp_path / reader / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (tmp_path / reader / "other.png").write_bytes(b"x")
        if reader in ("qasper", "mediawiki"):
            (tmp_path / reader / "README.md").write_text("About it.\n", encoding="utf-8")
        listing = looking.listed(tmp_path / reader)
        assert looking.reader_of(listing) == reader
        assert looking.wanted(listing, reader) == sorted(files)
    made = door.plan(door.Wish("new", tmp_path / "beir", options={"qrels": "test"}))
    assert made.facts["questions"] == 1
    for files in kinds.values():
        for name in files:
            for path in tmp_path.glob(f"beir/{name}"):
                path.unlink()
    with pytest.raises(InputError, match="no file that a reader knows"):
        looking.reader_of(looking.listed(tmp_path / "beir"))


@pytest.mark.usefixtures("bare")
def test_what_is_wrong_with_a_set_names_its_file_whole(tmp_path: Path, add: Add) -> None:
    folder = tmp_path / "my set"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_bytes(b'{"_id": "d", "text": "\xe9"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "x?"}\n', encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq\td\t1\nq\tgone\t1\n", encoding="utf-8")
    said = refused(add, "new", folder)
    assert said.startswith(f"error: {folder}/corpus.jsonl: byte e9")
    command = re.search(r"iconv .*?'.*?'", said)
    assert command is not None
    fixed = run("bash", "-c", command[0], at=Path("/"))
    (folder / "corpus.jsonl").write_text(fixed, encoding="utf-8")
    code, _, err = add("new", folder, "--dry-run")
    assert code == 0 and "note: judged documents that are not there: 1" in err
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "a.txt").write_text("A text.\n", encoding="utf-8")
    (cut / "tests.json").write_text('[{"query": "x?", "snippets": [', encoding="utf-8")
    assert "nobody can tell whether it holds queries" in refused(add, "new", cut)
    assert add("new", cut, "--reader", "text", "--dry-run")[0] == 0


def test_a_corpus_is_written_below_the_others_whatever_the_file_looks_like(tmp_path: Path) -> None:
    plain = (ROOT / "params.yaml").read_text(encoding="utf-8")
    one_line = yaml.safe_load(plain)["corpora"]
    shapes = {
        "windows": plain.replace("\n", "\r\n"),
        "last": plain.replace(plain[plain.index("corpora:"):plain.index("embedders:")], "")
        + plain[plain.index("corpora:"):plain.index("embedders:")].rstrip(),
        "one line": plain.replace(plain[plain.index("corpora:"):plain.index("embedders:")],
                                  f"corpora: {json.dumps(one_line)}\n"),
    }
    entry = {"reader": "beir", "path": "data/new", "options": {"qrels": "dev: x", "n": 3}}
    for name, text in shapes.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        made = profiles.with_corpus("new", entry, path)
        assert made.count("#") == text.count("#")
        path.write_text(made, encoding="utf-8", newline="")
        found = params.load(path).corpora
        assert list(found)[-1] == "new"
        assert found["new"].options == entry["options"]
        assert ("\r\n" in made) == (name == "windows")


def test_what_dvc_complains_of_is_passed_on(bare: Path) -> None:
    with pytest.raises(Unavailable, match="dvc no-such-command"):
        tracked.dvc(bare, "no-such-command")

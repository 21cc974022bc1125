"""The remote that git tracks: what belongs there, what git takes of it, and who is warned."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from spanwise.remotes import bundled, settings
from spanwise.remotes.door import check, mend
from spanwise.tracking.place import ENVIRONMENT as TRACKING

from .conftest import ROOT
from .remotes_world import call, clone, commit, does, objects, start
from .tracking_world import a_project

OURS = "A page that the repository brings.\n"
PRIVATE = "A page that is nobody's business.\n"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A repository with a bundled corpus, its remote and the list of that, as `make bundle` leaves
    them."""
    folder = tmp_path / "published"
    (folder / "data" / "handbook").mkdir(parents=True)
    (folder / "data" / "handbook" / "a.md").write_text(OURS)
    (folder / "data" / "handbook" / "b.md").write_text(OURS * 2)
    start(folder)
    config = (ROOT / ".dvc" / "config").read_text(encoding="utf-8")
    (folder / ".dvc" / "config").write_text(config)
    (folder / ".gitignore").write_text("/data\n/artifacts\n/mlruns\n/reports\n")
    does(folder, "dvc", "add", "-q", "data")
    does(folder, "dvc", "push", "-q")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    script = recipe[recipe.index("cd remote && {"):recipe.index("\tdu -sh remote")]
    does(folder, "sh", "-c", script.replace("\\\n", "\n"))
    commit(folder)
    return folder


def add_private(folder: Path) -> None:
    (folder / "data" / "notes").mkdir()
    (folder / "data" / "notes" / "n.md").write_text(PRIVATE)
    does(folder, "dvc", "add", "-q", "data")


def holds(folder: Path, text: str) -> bool:
    return any(text in path.read_text(errors="replace")
               for path in (folder / "remote" / "files").rglob("*") if path.is_file())


def test_what_a_colleague_pushes_to_the_bundled_remote_git_does_not_take(
    published: Path, tmp_path: Path
) -> None:
    add_private(published)
    commit(published)
    other = clone(published, tmp_path / "other")  # its default remote is `bundled` again
    does(published, "cp", "-a", str(published / ".dvc" / "cache"), str(other / ".dvc" / "cache"))
    does(other, "dvc", "checkout", "-q")
    does(other, "dvc", "push")
    assert holds(other, PRIVATE)
    does(other, "git", "add", "-A")
    assert not does(other, "git", "status", "--porcelain")
    # What was bundled is there for a clone of that clone all the same.
    third = clone(other, tmp_path / "third")
    assert holds(third, OURS) and not holds(third, PRIVATE)

    found = check("bundled", root=other)
    assert {its.place: its.state for its in found.left} == {
        "data": "foreign", "data/notes/n.md": "foreign"}
    assert all("git ignores it" in its.said for its in found.left)
    does(other, "git", "add", "-f", "remote")
    assert all("git has it" in its.said for its in check("bundled", root=other).left)
    assert mend("bundled", remove=True, root=other).fine
    assert holds(other, OURS) and not holds(other, PRIVATE)
    assert check("bundled", deep=True, root=other).fine


def test_a_mend_of_the_bundled_remote_sends_the_bundled_corpus_alone(published: Path) -> None:
    add_private(published)
    for path in [*objects(published / "remote"), *(published / "remote").rglob("*.dir")]:
        path.unlink()
    found = mend("bundled", root=published)
    assert holds(published, OURS * 2) and not holds(published, PRIVATE)
    assert found.fine and len(found.actions) == 3  # two files, and the list that names no other
    # Without the remote's own list it is the bundled corpora's files, by their folders.
    (published / "remote" / bundled.LIST).unlink()
    objects(published / "remote")[0].unlink()
    found = mend("bundled", root=published)
    assert found.fine and len(found.actions) == 1 and len(found.seen.named) == 2
    assert not holds(published, PRIVATE)


def test_whoever_would_push_private_text_into_the_repository_is_warned(
    published: Path, tmp_path: Path
) -> None:
    assert bundled.warning(published, ["handbook"]) is None
    add_private(published)
    text = bundled.warning(published, ["handbook"])
    assert text and "would put notes into it" in text and text.startswith("WARNING")
    assert bundled.warning(published, ["handbook", "other"])
    # The command that it names ends it.
    command = bundled.OWN.replace("/path/outside/the/repository", str(tmp_path / "elsewhere"))
    assert command != bundled.OWN and command in text.replace(
        "/path/outside/the/repository", str(tmp_path / "elsewhere"))
    does(published, *command.split())
    assert bundled.warning(published, ["handbook", "other"]) is None
    assert bundled.warning(tmp_path, ["other"]) is None  # no DVC there


def test_the_stage_that_always_runs_warns_too(published: Path) -> None:
    assert set(a_project(published).corpora) - bundled.BUNDLED
    command = [sys.executable, str(ROOT / "stages" / "track.py"), "--root", "."]
    done = call(published, *command, **TRACKING)
    assert done.returncode == 0 and "WARNING: do not `dvc push` yet" in done.stderr, done.stderr
    does(published, *bundled.OWN.split())
    done = call(published, *command, **TRACKING)
    assert done.returncode == 0 and "WARNING: do not" not in done.stderr


def test_this_repositorys_remote_holds_the_bundled_corpus_and_nothing_else() -> None:
    """Fails before private text, or another run's, is published."""
    folder = ROOT / "remote"
    files = {path.relative_to(folder).as_posix() for path in (folder / "files").rglob("*")
             if path.is_file()}
    taken = settings.exposed(folder, ROOT)
    if taken is not None:
        files &= {path.relative_to(folder).as_posix() for path in taken}
    listed = bundled.listed(folder)
    assert listed and len(listed) > 50
    assert files == {f"files/md5/{oid[:2]}/{oid[2:]}" for oid in listed}
    if taken is not None:  # by the list alone, whatever git has already
        others = ["92/" + "0" * 30, "runs/00/0/0", "files/md5/00/" + "0" * 30, "files/md5/0"]
        asked = [str(folder / name) for name in [*files, *others]]
        ignored = call(ROOT, "git", "check-ignore", "--no-index", *asked).stdout.splitlines()
        assert ignored == [str(folder / name) for name in others]
    found = check("bundled", deep=True, root=ROOT)
    assert [(its.place, its.said) for its in found.left] == []
    corpora = {bundled.corpus_of(its.place) for its in found.seen.named.values()}
    assert corpora <= {*bundled.BUNDLED, None}


def add_all_that_dvc_pushes(folder: Path) -> dict[str, str]:
    """Private text as an object of DVC 2's, and paths of it as a run cache; path -> state.

    DVC's own push puts them there.
    """
    text = folder / "old.txt"
    text.write_text(PRIVATE)
    digest = hashlib.md5(text.read_bytes()).hexdigest()
    cached = folder / ".dvc" / "cache" / digest[:2] / digest[2:]
    cached.parent.mkdir(parents=True)
    cached.write_text(PRIVATE)
    (folder / "old.txt.dvc").write_text(
        f"outs:\n- md5: {digest}\n  size: {len(PRIVATE)}\n  path: old.txt\n")
    (folder / "dvc.yaml").write_text(
        "stages:\n  one:\n"
        "    cmd: mkdir -p artifacts && cp data/notes/n.md artifacts/private-name\n"
        "    deps: [data/notes/n.md]\n    outs: [artifacts/private-name]\n")
    does(folder, "dvc", "repro", "-q", "one")
    does(folder, "dvc", "push", "--run-cache")
    (run,) = [path for path in (folder / "remote" / "runs").rglob("*") if path.is_file()]
    assert "private-name" in run.read_text()
    old = folder / "remote" / digest[:2] / digest[2:]
    assert old.read_text() == PRIVATE
    return {path.relative_to(folder / "remote").as_posix(): path.read_text() for path in (run, old)}


def test_what_dvc_2_and_run_caches_put_there_is_not_gits_is_found_and_taken_out(
    published: Path
) -> None:
    add_private(published)
    strays = add_all_that_dvc_pushes(published)
    (published / "old.txt").unlink()
    remote = published / "remote"
    said = does(published, "git", "status", "--porcelain", "-uall", "remote")
    assert said == "" and settings.in_git(remote, published)
    faults = {its.oid: its for its in check("bundled", root=published).left}
    assert {faults[name].state for name in strays} == {"foreign"}
    # Without the list git would take them, and it is said; so is what DVC has not put there.
    (remote / bundled.LIST).write_text("/files/\n")
    (remote / "letter.txt").write_text(PRIVATE)
    faults = {its.oid: its for its in check("bundled", root=published).left}
    assert all("git has it or would take it" in faults[name].said
               for name in [*strays, "letter.txt"])

    does(published, "rm", "-rf", ".dvc/cache")
    found = mend("bundled", remove=True, root=published)
    assert [(its.oid, found.actions[its.oid]) for its in found.left] == [
        ("letter.txt", "not taken out: DVC did not put it there; move it yourself")]
    assert not any((remote / name).exists() for name in strays)
    assert {name: (published / ".dvc/cache" / name).read_text() for name in strays} == strays
    does(published, "dvc", "checkout", "-q", "old.txt.dvc")
    assert (published / "old.txt").read_text() == PRIVATE


def test_the_only_copy_of_private_text_is_kept_before_it_is_taken_out(published: Path) -> None:
    add_private(published)
    does(published, "dvc", "push", "-q")
    does(published, "rm", "-rf", ".dvc/cache", "data")
    dry = mend("bundled", remove=True, dry_run=True, root=published)
    assert holds(published, PRIVATE) and not (published / ".dvc" / "cache" / "files").exists()
    assert set(dry.actions.values()) == {"would be taken out, a copy is kept in the cache"}
    found = mend("bundled", remove=True, root=published)
    assert found.fine and not holds(published, PRIVATE)
    does(published, "dvc", "pull", "-q")
    assert (published / "data" / "notes" / "n.md").read_text() == PRIVATE


def test_what_no_sound_copy_can_be_kept_of_stays(published: Path) -> None:
    add_private(published)
    does(published, "dvc", "push", "-q")
    does(published, "rm", "-rf", ".dvc/cache", "data")
    (page,) = [path for path in objects(published / "remote") if path.read_text() == PRIVATE]
    page.chmod(0o644)
    page.write_text(PRIVATE[:-5])  # what is left of it is worth more than nothing
    found = mend("bundled", remove=True, root=published)
    assert [found.actions[its.oid] for its in found.left] == ["not taken out: it is damaged"]
    assert page.read_text() == PRIVATE[:-5]
    # Nor where the cache is the remote itself: there the copy would go with it.
    page.write_text(PRIVATE)
    does(published, "dvc", "push", "-q", "-r", "bundled")
    does(published, "dvc", "cache", "dir", "--local", "remote")
    found = mend("bundled", remove=True, root=published)
    assert {found.actions[its.oid] for its in found.left} == {
        "not taken out: the cache is the same folder"}
    assert page.read_text() == PRIVATE


def test_gits_view_of_an_empty_bundled_remote_is_that_of_a_full_one(published: Path) -> None:
    """`make bundle` begins with `rm -rf remote/files`."""
    does(published, "rm", "-rf", "remote/files")
    assert settings.in_git(published / "remote", published)
    assert {path.name for path in settings.exposed(published / "remote", published) or ()
            if path.is_file()} == {bundled.LIST}
    does(published, "git", "rm", "-rq", "--cached", "remote")
    (published / "remote" / bundled.LIST).write_text("*\n")
    assert not settings.in_git(published / "remote", published)

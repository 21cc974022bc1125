"""DVC, by its own command: what `data.dvc` tracks is pulled first, then grows by one folder.

The bundled remote is a folder that git tracks, so private text must never reach it: before anything
is added, the default remote is one of the person's own, in `.dvc/config.local`, which git ignores.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from spanwise.errors import InputError, Unavailable

DATA = Path("data")
POINTER = Path("data.dvc")
LOCAL = Path(".dvc/config.local")
OWN = "own"
"""Name of the remote that is made."""
WRITES: Mapping[Path, tuple[str, ...]] = {
    LOCAL: ("[core]\n", f"remote = {OWN}\n", f"['remote \"{OWN}\"']\n", "url = ", "verify = "),
    POINTER: ("outs:\n", "- md5: ", "size: ", "nfiles: ", "hash: ", "path: "),
    Path(".gitignore"): (f"/{DATA}\n",),
}
"""The files that DVC writes for `use` and `add`, and how the lines begin that it changes there."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote.

    made:  it becomes the default one.
    known: it is there already.
    """

    name: str
    url: str
    made: bool = False
    known: bool = True


def require_project(root: Path) -> None:
    """Raise InputError unless DVC knows the folder, and data.dvc, if there, says what it tracks."""
    if not (root / ".dvc" / "config").is_file() or not (root / "params.yaml").is_file():
        raise InputError(
            f"{root}: no .dvc/config and params.yaml; run spanwise in the project's root"
        )
    if (root / POINTER).is_file():
        _tracked(root)


def _tracked(root: Path) -> str:
    """The digest that data.dvc holds, of the list of all files in data/.

    raises: InputError for another kind of file: DVC skips it with a warning, and what it tracked
            would be dropped.
    """
    try:
        found = yaml.safe_load((root / POINTER).read_text(encoding="utf-8"))["outs"][0]
        if found["path"] == str(DATA) and re.fullmatch(r"[0-9a-f]{32}\.dir", found["md5"]):
            return str(found["md5"])
    except (yaml.YAMLError, UnicodeDecodeError, LookupError, TypeError):
        pass
    raise InputError(
        f"{root / POINTER}: not what DVC writes (one of `outs`, with the `md5` and the `path` of "
        f"{DATA}); take back what git has: git checkout {POINTER}"
    )


def remote(root: Path, url: str | None) -> Remote:
    """The remote that a push is to go to by default, which is never inside the project.

    url:    a place of the person's, `own` from now on; without one a default remote outside what
            git tracks stays, and where there is none, a folder beside that is it.
    raises: InputError for a place inside it, and for another place of a remote `own`.
    """
    known, default = _remotes(root)
    if url is None and default is not None and not _inside(root, known[default]):
        return Remote(default, known[default])
    if url is None and OWN in known and not _inside(root, known[OWN]):
        return Remote(OWN, known[OWN], made=True)
    top = _top(root)
    place = url if url is not None else str(top.parent / f"{top.name}-remote")
    if not place.strip() or any(ord(character) < 32 for character in place):
        raise InputError(f"--remote {place!r}: expected a folder or an address such as s3://...")
    if "://" not in place:
        place = str((root / Path(place).expanduser()).resolve())
    if _inside(root, place):
        raise InputError(
            f"--remote {place}: it lies inside {top}, where git could take it up; name a place "
            "outside"
        )
    if OWN in known and known[OWN] != place:
        raise InputError(
            f"--remote {place}: a remote {OWN!r} is there already, at {known[OWN]}; leave --remote "
            f"out, or change it: dvc remote modify --local {OWN} url {place}"
        )
    return Remote(OWN, place, made=default != OWN, known=OWN in known)


def _remotes(root: Path) -> tuple[dict[str, str], str | None]:
    """The remotes' places by name, and the default's name."""
    known: dict[str, str] = {}
    default = None
    for line in dvc(root, "remote", "list").splitlines():
        found = re.fullmatch(r"(\S+)\s+(.*?)(\s+\(default\))?\s*", line)
        if found:
            known[found[1]] = found[2]
            default = found[1] if found[3] else default
    return known, default


def _inside(root: Path, url: str) -> bool:
    bare = url.removeprefix("file://")
    return "://" not in bare and (root / bare).resolve().is_relative_to(_top(root))


def _top(root: Path) -> Path:
    """The folder that git tracks, of which the project may be a part; without git the project."""
    here = root.resolve()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)


def use(root: Path, its: Remote) -> None:
    """Make a remote the default one on this machine."""
    if its.known:
        dvc(root, "remote", "default", "--local", its.name)
    else:
        dvc(root, "remote", "add", "--local", "-d", its.name, its.url)
        # A damaged object is found when it is fetched, and not taken in.
        dvc(root, "remote", "modify", "--local", its.name, "verify", "true")


def wrote(name: Path, before: bytes | None, now: bytes | None) -> bool:
    """Whether a file of WRITES differs from what it was only in lines that DVC writes there.

    A line may be cut, as on a full disk. DVC indents anew, drops comments and puts other values in
    place of those that were there.
    """
    was, is_now = (
        Counter(line.strip() for line in (content or b"").decode("utf-8", "replace").splitlines())
        for content in (before, now)
    )
    starts = WRITES[name]
    heads = {"#", *(start.split()[0] for start in starts)}
    return all(
        f"{line}\n".startswith(starts) or any(start.startswith(line) for start in starts)
        for line in is_now - was
    ) and all(not line or line[0] in heads or line.split()[0] in heads for line in was - is_now)


def pull(root: Path) -> None:
    """Bring what data.dvc tracks into data/: what is not there when it is added anew is dropped.

    raises: InputError where data/ holds what data.dvc does not know; Unavailable where no remote
            has it.
    """
    if not (root / POINTER).is_file():
        return
    try:
        dvc(root, "pull", str(POINTER))
        return
    except Unavailable as error:
        if "unsaved" in str(error):
            raise InputError(
                f"{DATA}/ holds files that {POINTER} does not know, and they would be overwritten: "
                f"record them with `dvc add {DATA}`, or move them away ({_last(error)})"
            ) from None
        failed = error
    known, default = _remotes(root)
    for name in known:
        if name != default:
            try:
                dvc(root, "pull", "--remote", name, str(POINTER))
                return
            except Unavailable:
                continue
    raise Unavailable(
        f"what {POINTER} tracks cannot be had, and adding to it now would drop it: "
        f"{_last(failed)}; run `dvc pull {POINTER}` with the remote that has it"
    )


def cache(root: Path) -> Path:
    """Where DVC keeps the files that it tracks, by their digests."""
    return root / dvc(root, "cache", "dir").strip() / "files" / "md5"


def add(root: Path) -> None:
    """Record all of data/ in data.dvc.

    raises: Unavailable too where DVC's cache lacks a file afterwards, of which DVC complains and
            ends well: on a full disk data.dvc would name what no push could send.
    """
    _, said = _run(root, "add", str(DATA))
    objects = cache(root)
    name = _tracked(root)
    listed = json.loads((objects / name[:2] / name[2:]).read_bytes())
    lost = [one["relpath"] for one in listed
            if not (objects / one["md5"][:2] / one["md5"][2:]).is_file()]
    if lost:
        complaint = next((line for line in said.splitlines() if "ERROR: " in line), "")
        why = complaint.partition("ERROR: ")[2] or "DVC does not say why"
        raise Unavailable(
            f"dvc add {DATA}: {len(lost)} of its files did not come into DVC's cache at {objects}, "
            f"e.g. {', '.join(lost[:1])}: {why}\nmend that, e.g. make room, and run it again"
        )


def dvc(root: Path, *arguments: str) -> str:
    """What a DVC command prints.

    raises: Unavailable with what it complained of.
    """
    return _run(root, *arguments)[0]


def _run(root: Path, *arguments: str) -> tuple[str, str]:
    """What a DVC command prints, and what it complains of though it ends well."""
    found = subprocess.run(
        [sys.executable, "-m", "dvc", *arguments], cwd=root, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, errors="backslashreplace",
        env=os.environ | {"DVC_NO_ANALYTICS": "1", "COLUMNS": "1000"},
    )
    if found.returncode:
        said = found.stderr.strip() or found.stdout.strip()
        raise Unavailable(f"dvc {' '.join(arguments)}: {said}")
    return found.stdout, found.stderr


def _last(error: Exception) -> str:
    """What DVC names as the error, else the last line that it printed."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = next((line.partition("ERROR: ")[2] for line in lines if "ERROR: " in line), "")
    return named or lines[-1]

"""registration.json: entries that are only ever added, and what shows that one was edited.

An entry holds the digest of its own content and that of the entry before it; the first of them
also holds those of older entries, which carry none. So an edit shows wherever an entry has a
digest or is followed by one that does. Beyond that git alone can tell (`proof`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from spanwise import schemas
from spanwise.errors import RegistrationError
from spanwise.params import Params
from spanwise.registration.fixed import protocol

FILE = Path("registration.json")

Entry = dict[str, Any]

NEEDED = ("reason", "parent_commit", "protocol")
KNOWN = (*NEEDED, "too_late", "weights", "earlier_sha256", "previous_sha256", "sha256")
MAPPINGS = (
    "contrasts", "primary", "inference", "statistics", "exploratory", "conditions", "embedder",
    "reranker", "tokens", "encoders", "chunking", "external", "inducers", "prefixes", "retrieval",
    "corpora",
)
LISTS = ("measures", "exclusions")


def load(path: Path = FILE) -> list[Entry]:
    """The entries of a registration, oldest first; [] where there is none.

    raises: RegistrationError if the file is not a registration.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, f"cannot be read as UTF-8 text: {error}") from None
    return parse(text, path)


def parse(text: str, path: Path = FILE) -> list[Entry]:
    """The entries of a registration's text.

    raises: RegistrationError that names the entry and the key.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"is no JSON that can be used: {error}") from None
    if not isinstance(found, dict) or list(found) != ["entries"]:
        raise _unusable(path, "is not a registration: expected one key, `entries`")
    if not isinstance(found["entries"], list):
        raise _unusable(path, "is not a registration: `entries` is no list")
    for number, entry in enumerate(found["entries"], 1):
        if complaint := _complaint(entry):
            raise _unusable(path, f"is not a registration: entry {number}: {complaint}")
    return list(found["entries"])


def _unusable(path: Path, what: str) -> RegistrationError:
    return RegistrationError(
        f"{path} {what}; entries are never edited: restore the committed file with "
        f"`git checkout -- {path}`, and change params.yaml and `spanwise register amend` instead"
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; json itself would silently keep the last of two values of one key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} stands twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _complaint(entry: Any) -> str | None:
    """What makes an entry unusable, or None."""
    if not isinstance(entry, dict):
        return "is no mapping"
    if missing := [key for key in NEEDED if key not in entry]:
        return f"lacks {', '.join(missing)}"
    if unknown := [key for key in entry if key not in KNOWN]:
        return f"unknown key {unknown[0]!r}; known here: {', '.join(KNOWN)}"
    texts = [key for key in ("reason", "parent_commit", "sha256") if key in entry]
    if entry.get("previous_sha256") is not None:
        texts.append("previous_sha256")
    if wrong := [key for key in texts if not isinstance(entry[key], str)]:
        return f"{wrong[0]} is no text"
    for key, of in (("too_late", "corpora"), ("earlier_sha256", "digests")):
        listed = entry.get(key, [])
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            return f"{key} is no list of {of}"
    weights = entry.get("weights", {})
    if not isinstance(weights, dict) or not all(isinstance(v, str) for v in weights.values()):
        return "weights is no mapping of files to digests"
    fixed = entry["protocol"]
    if not isinstance(fixed, dict):
        return "protocol is no mapping"
    for key in (*MAPPINGS, *LISTS):
        kind, word = (dict, "mapping") if key in MAPPINGS else (list, "list")
        if key in fixed and not isinstance(fixed[key], kind):
            return f"protocol.{key} is no {word}"
    if not fixed.get("corpora"):
        return "protocol.corpora names no corpora, so it fixes nothing for any"
    for name, its in fixed["corpora"].items():
        if not isinstance(its, dict):
            return f"protocol.corpora.{name} is no mapping"
    return None


def digest(entry: Mapping[str, Any]) -> str:
    """SHA-256 of an entry's content: its JSON without `sha256`, sorted keys, no white space."""
    content = {key: value for key, value in entry.items() if key != "sha256"}
    text = json.dumps(
        content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def edited(entries: list[Entry]) -> list[tuple[int, str]]:
    """Entries that are not as they were written, in order: (index, why as a sentence).

    What an edited entry named before cannot be told, so no later entry is sure to be the first one
    that names a corpus either.
    """
    found: dict[int, str] = {}
    signed = False
    for i, entry in enumerate(entries):
        signed = signed or _signed(entry)
        if not signed:
            continue
        if entry.get("sha256") != digest(entry):
            found.setdefault(i, _edited(i, "does not match" if "sha256" in entry else "is missing"))
        held = _held(entry)
        if len(held) > i or (not held and i) or ("earlier_sha256" in entry and len(held) < i):
            found.setdefault(
                i, f"entry {i + 1} does not follow what stands before it: an entry was removed, "
                "added or moved"
            )
            continue
        for back, link in enumerate(reversed(held), 1):
            before = entries[i - back]
            if digest(before) == link:
                continue
            # Whole in itself, and yet not what this entry followed.
            whole = before.get("sha256") == digest(before)
            found.setdefault(
                i - back,
                f"entry {i + 1} does not follow entry {i - back + 1} as it stands: an entry was "
                "removed or moved, or rewritten with its digest" if whole
                else _edited(i - back, "does not match"),
            )
    return sorted(found.items())


def _edited(i: int, what: str) -> str:
    return f"entry {i + 1} was edited after it was written: its digest {what}"


def _signed(entry: Mapping[str, Any]) -> bool:
    """Whether an entry was written when entries had digests, even if one was taken out."""
    return "statistics" in entry["protocol"] or not entry.keys().isdisjoint(
        ("sha256", "previous_sha256", "earlier_sha256")
    )


def _held(entry: Mapping[str, Any]) -> list[str]:
    """The digests of entries before it that an entry holds, the nearest last."""
    previous = entry.get("previous_sha256")
    return [] if previous is None else [*entry.get("earlier_sha256", []), previous]


def register(
    params: Params, digests: Mapping[str, Mapping[str, str]], parent_commit: str, reason: str,
    path: Path = FILE, too_late: Collection[str] = (), dry_run: bool = False,
    weights: Mapping[str, str] | None = None,
) -> Entry:
    """Append an entry; earlier ones stay, byte for byte.

    too_late: corpora on which the strong embedder has run already; the entry says so, and it will
              confirm nothing about them.
    dry_run:  check all and write nothing.
    weights:  file -> SHA-256 of the strong embedder's weights, where they are at hand.
    returns:  the entry.
    raises: RegistrationError if nothing changed, if a further entry has no reason, or if an entry
            was edited, whose digest a further one would vouch for.
    """
    entries = load(path)
    made = protocol(params, digests)
    if entries and not reason.strip():
        raise RegistrationError(
            f"{path} has an entry already: a further one, for a new corpus or an amendment, "
            "needs a reason, `spanwise register --reason WHY`"
        )
    if entries and entries[-1]["protocol"] == made:
        raise RegistrationError(f"{path}: this protocol is registered already")
    for _, why in edited(entries):
        raise _unusable(path, f"cannot be amended: {why}")
    entry: Entry = {
        "reason": reason.strip() or "first registration",
        "parent_commit": parent_commit,
        **({"too_late": sorted(too_late)} if too_late else {}),
        **({"weights": dict(weights)} if weights else {}),
        "protocol": made,
    }
    if entries and not any(map(_signed, entries)):
        entry["earlier_sha256"] = [digest(old) for old in entries[:-1]]
    entry["previous_sha256"] = digest(entries[-1]) if entries else None
    entry["sha256"] = digest(entry)
    if not dry_run:
        schemas.write_text(path, _appended(path, entry, bool(entries)))
    return entry


def _appended(path: Path, entry: Entry, follows: bool) -> str:
    """The file's text with one more entry, whatever the layout of what stands there."""
    text = path.read_bytes().decode("utf-8") if path.exists() else '{\n  "entries": []\n}\n'
    # `entries` is the file's one key: what closes it is the last bracket and the last brace.
    head = text.rstrip()[:-1].rstrip()[:-1].rstrip()
    lines = json.dumps(entry, indent=2, ensure_ascii=False).split("\n")
    shown = "\n".join(f"    {line}" for line in lines)
    return f"{head}{',' if follows else ''}\n{shown}\n  ]\n}}\n"

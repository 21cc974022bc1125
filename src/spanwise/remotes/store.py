"""One remote through DVC's own file systems: listed, fetched, sent to and emptied, in parallel."""

from __future__ import annotations

import filecmp
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from spanwise.errors import InputError, Unavailable
from spanwise.remotes import settings

T = TypeVar("T")
GONE = "gone"
"""In a digest's place: the object is not there."""


@dataclass(frozen=True, slots=True)
class Store:
    """A remote, and the cache on this machine.

    odb:   DVC's object database of the remote. cache: that of this machine.
    place: its folder or address, without a password.
    url:   what DVC's settings call it.
    """

    name: str
    place: str
    folder: Path | None
    repo: Any
    odb: Any
    cache: Any

    def kept(self, oid: str) -> Path:
        """Where the cache has an object, or would."""
        return Path(self.cache.oid_to_path(oid))

    def sizes(self, oids: Collection[str]) -> dict[str, int]:
        """Bytes of those objects that are there: one listing for each of up to 256 folders.

        raises: Unavailable where the remote does not answer.
        """
        with suppress(AttributeError):
            self.odb.fs.fs.invalidate_cache()  # S3's library would repeat an earlier listing
        wanted = set(oids)
        found: dict[str, int] = {}
        prefixes = sorted({oid[:2] for oid in wanted})
        for _, listing in self._each(self._listing, prefixes, "list the remote", "folder"):
            found |= {oid: size for oid, size in listing.items() if oid in wanted}
        return found

    def _listing(self, prefix: str) -> dict[str, int]:
        try:
            entries = self.odb.fs.ls(self.odb.fs.join(self.odb.path, prefix), detail=True)
            return {prefix + str(entry["name"]).rstrip("/").rpartition("/")[2]: entry["size"]
                    for entry in entries if entry["type"] == "file"}
        except FileNotFoundError:
            return {}

    def digests(self, oids: Sequence[str]) -> dict[str, str]:
        """MD5 of what each object holds, or `GONE`; each is fetched whole, one after the other.

        raises: Unavailable where the remote does not answer.
        """
        with tempfile.TemporaryDirectory(prefix="spanwise-remote-") as folder:
            def digest(oid: str) -> str:
                with self._local(oid, Path(folder)) as path:
                    return md5(path)
            return dict(self._each(digest, oids, "hash the remote", "object", GONE))

    def contents(self, oids: Sequence[str]) -> dict[str, bytes]:
        """What small objects hold, those that are there.

        raises: Unavailable where the remote does not answer.
        """
        with tempfile.TemporaryDirectory(prefix="spanwise-remote-") as folder:
            def content(oid: str) -> bytes | None:
                with self._local(oid, Path(folder)) as path:
                    return path.read_bytes()
            found = self._each(content, oids, "read lists of folders", "list", None)
            return {oid: its for oid, its in found if its is not None}

    @contextmanager
    def _local(self, oid: str, scratch: Path) -> Iterator[Path]:
        """An object as a file of this machine."""
        place = self.odb.oid_to_path(oid)
        if self.odb.fs.protocol == "local":
            yield Path(place)
            return
        path = scratch / oid
        try:
            self.odb.fs.get_file(place, str(path))
            yield path
        finally:
            path.unlink(missing_ok=True)

    def put(self, files: Mapping[str, Path], instead: Collection[str] = ()) -> dict[str, str]:
        """Send objects.

        instead: those that are there already, with another content.
        returns: object -> why it could not be sent, of those that failed.
        raises:  Unavailable where the remote does not answer.
        """
        from dvc.fs.callbacks import Callback
        from tqdm import tqdm

        failed: dict[str, str] = {}

        def note(oid: str, error: BaseException) -> None:
            failed[oid] = said(error)

        # Where files are cloned, DVC's own way leaves one that is there as it is.
        self.remove(instead)
        with tqdm(total=len(files), desc="send", unit="object", disable=None) as bar:
            class Shown(Callback):  # type: ignore[misc]
                def relative_update(self, inc: int = 1) -> None:
                    bar.update(inc)

            # Lists last, as DVC does it: where one is, all that it names is taken for pushed.
            for last in (False, True):
                part = {oid: str(path) for oid, path in files.items()
                        if oid.endswith(".dir") == last}
                if failed or not part:
                    failed |= dict.fromkeys(part, "another object could not be sent")
                    continue
                try:
                    self.odb.add(
                        list(part.values()), self.cache.fs, list(part), check_exists=False,
                        verify=False, on_error=note, batch_size=self.odb.fs.jobs,
                        callback=Shown(),
                    )
                except Exception as error:  # each library has errors of its own
                    raise self._unavailable(error) from None
        return failed

    def keep(self, oids: Iterable[str]) -> dict[str, str]:
        """Have a sound copy of each object in the cache, fetched where it has none.

        returns: object -> why there is none, of those that have none.
        raises:  Unavailable where the remote does not answer.
        """
        wanted = sorted(oids)
        with tempfile.TemporaryDirectory(prefix="spanwise-remote-") as folder:
            def keep(oid: str) -> str | None:
                with self._local(oid, Path(folder)) as path:
                    return _kept(path, self.kept(oid), lambda copy: holds(copy, oid))
            found = self._each(keep, wanted, "copy to the cache", "object",
                               "it is not there any more")
            return {oid: why for oid, why in found if why is not None} if wanted else {}

    def keep_file(self, relative: str, path: Path) -> str | None:
        """The same for a file that is no object of DVC 3's, at its path inside the remote.

        returns: why there is no copy; None where there is one.
        """
        place = Path(self.repo.cache.local_cache_dir) / relative
        return _kept(path, place, lambda copy: filecmp.cmp(path, copy, shallow=False))

    def remove(self, oids: Iterable[str]) -> None:
        """Take objects out of the remote, those that are there.

        raises: Unavailable where the remote does not answer or does not let it.
        """
        if listed := sorted(oids):
            for _ in self._each(self._delete, listed, "take out", "object"):
                pass

    def _delete(self, oid: str) -> None:
        with suppress(FileNotFoundError):
            self.odb.delete(oid)

    def _each(
        self, work: Callable[[str], T], oids: Sequence[str], what: str, unit: str,
        gone: Any = None,
    ) -> Iterator[tuple[str, T]]:
        """Work on each in as many threads as DVC has connections, in the order that they end.

        gone: the result where there is nothing to work on.
        """
        from tqdm import tqdm

        futures: dict[Future[T], str] = {}
        with (
            ThreadPoolExecutor(max_workers=self.odb.fs.jobs) as pool,
            tqdm(total=len(oids), desc=what, unit=unit, disable=None) as bar,
        ):
            try:
                futures = {pool.submit(work, oid): oid for oid in oids}
                for future in as_completed(futures):
                    bar.update()
                    try:
                        yield futures[future], future.result()
                    except FileNotFoundError:
                        yield futures[future], gone
            except Exception as error:  # each library has errors of its own
                raise self._unavailable(error) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _unavailable(self, error: BaseException) -> Unavailable:
        return Unavailable(
            f"remote {self.name} ({self.place}): {said(error)}; docs/remotes.md, section 1, says "
            "what each kind of remote needs"
        )


def _kept(path: Path, place: Path, sound: Callable[[Path], bool]) -> str | None:
    """Copy a file into the cache unless a sound one is there; why there is none, or None."""
    if path.resolve() == place.resolve():
        return "the cache is the same folder"
    try:
        if place.is_file() and sound(place):
            return None
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".spanwise-", dir=place.parent) as folder:
            copy = Path(folder) / place.name
            shutil.copyfile(path, copy)
            if not sound(copy):
                return "it is damaged"
            copy.chmod(0o444)  # as DVC leaves its cache
            copy.replace(place)
    except OSError as error:
        return f"no copy of it can be put into the cache: {said(error)}"
    return None


def holds(path: Path, oid: str) -> bool:
    """Whether a file can be read and holds the object."""
    try:
        return path.is_file() and md5(path) == oid.removesuffix(".dir")
    except OSError:
        return False


def md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


def said(error: BaseException) -> str:
    """What an error of a library says, on one line, without a password."""
    words = " ".join(str(error).split()) or type(error).__name__
    return settings.shown(words)


def opened(root: Path, name: str | None) -> Store:
    """A remote of the project, by default the one that a push goes to.

    raises: InputError if DVC's settings name no such remote; Unavailable if it cannot be opened.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        config = settings.configured(root)
    except ValueError as error:
        raise InputError(f"DVC's settings cannot be read: {error}") from None
    if config is None:
        raise InputError(f"{root.resolve()}: no .dvc; run spanwise in the project's root")
    remotes: Mapping[str, Any] = config.get("remote", {})
    name = name if name is not None else config.get("core", {}).get("remote")
    there = ", ".join(sorted(remotes)) or "none"
    if name is None:
        raise InputError(f"there is no default remote; name one with --remote: {there}")
    if name not in remotes:
        raise InputError(f"remote {name!r} is not in DVC's settings; expected one of: {there}")
    place = settings.shown(str(remotes[name].get("url", "")))
    folder = settings.folder_of(remotes[name])
    if folder is not None and not folder.is_dir():
        raise Unavailable(f"remote {name}: {folder} is not there; mount it, or make it with a "
                          f"first `dvc push -r {name}`")
    try:
        repo = Repo(str(root))
        odb = repo.cloud.get_remote_odb(name, "remote check")
        _ = odb.fs.fs  # connects
    except DvcException as error:
        if "RemoteMissingDeps" in type(error).__name__:
            raise Unavailable(f"remote {name} ({place}): {said(error)}") from None
        raise InputError(f"remote {name} ({place}): {said(error)}") from None
    except Exception as error:  # each library has errors of its own
        raise Unavailable(f"remote {name} ({place}): {said(error)}") from None
    return Store(name, place, folder, repo, odb, repo.cache.local)

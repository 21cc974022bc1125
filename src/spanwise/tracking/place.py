"""Where MLflow's store lies, and what makes it survive that the project's folder moves.

The default is a SQLite database `mlruns/mlflow.db` with artifacts under `mlruns/artifacts`, both in
the project's root; MLFLOW_TRACKING_URI names another store. MLflow writes absolute paths of
artifacts into its database: where a folder was moved or copied, they are corrected before the
database is opened.
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from spanwise.errors import InputError

EXPERIMENT = "spanwise/"
"""What every experiment's name begins with; the corpus follows, or `units/` and the corpus."""

HOST = "127.0.0.1"
PATIENCE_SECONDS = 5.0
"""How long a server may take to end by itself."""

_PATHS = (("experiments", "artifact_location"), ("runs", "artifact_uri"))
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # A server that is down is said within half a minute; MLflow alone would try for four.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""MLflow's switches, set before it is imported wherever a person has not set them."""


@dataclass(frozen=True, slots=True)
class Place:
    """An MLflow store.

    uri:       what MLflow calls the tracking URI.
    database:  the SQLite file, or None for a server and for other databases.
    artifacts: the folder that new experiments keep artifacts in; None lets a server decide.
    """

    uri: str
    database: Path | None
    artifacts: Path | None

    @property
    def shown(self) -> str:
        """The URI without a user's name and password."""
        parts = urlsplit(self.uri)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def told(self, error: object) -> str:
        """What an error says without the user's name and password, which MLflow repeats."""
        said, secret = str(error), urlsplit(self.uri).netloc.rpartition("@")[0]
        for form in {secret, unquote(secret)} - {""}:
            said = said.replace(f"{form}@", "")
        return said


def place(root: Path, tracking_uri: str | None = None) -> Place:
    """The store to use: `tracking_uri`, else MLFLOW_TRACKING_URI, else the project's own.

    Artifacts of a SQLite store lie in `artifacts/` beside the database.
    raises: InputError for a folder or `file:`, which MLflow no longer takes.
    """
    uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or _sqlite(root)
    scheme = urlsplit(uri).scheme
    if scheme == "sqlite":
        name = uri.removeprefix("sqlite:").removeprefix("///").partition("?")[0]
        if not name.strip("/") or name == ":memory:":
            raise InputError(f"tracking URI {uri!r} names no file: expected sqlite:///FILE.db")
        database = Path(unquote(name)).resolve()
        return Place(uri, database, database.parent / "artifacts")
    if scheme in ("", "file"):
        raise InputError(
            f"tracking URI {uri!r} is a folder: expected sqlite:///FILE.db, another database, or "
            "http(s)://HOST of an MLflow server; set MLFLOW_TRACKING_URI to one, or unset it"
        )
    # A database on a server (postgresql, mysql, ...) holds no files: they stay in the project.
    served = scheme.startswith(("http", "databricks", "uc"))
    return Place(uri, None, None if served else root.resolve() / "mlruns" / "artifacts")


def prepare(found: Place) -> None:
    """Make room for a SQLite database, or correct the artifact paths of one that has moved.

    raises: InputError if the file is no SQLite database, or cannot be opened.
    """
    if found.database is None or found.artifacts is None:
        return
    found.database.parent.mkdir(parents=True, exist_ok=True)
    here = found.artifacts.as_uri()
    try:
        with closing(sqlite3.connect(found.database)) as connection, connection:
            named = "SELECT name FROM sqlite_master WHERE type = 'table'"
            if not {"experiments", "runs"} <= {name for name, in connection.execute(named)}:
                return
            experiments = connection.execute("SELECT name, artifact_location FROM experiments")
            # One of ours lies in <artifacts>/<corpus> or <artifacts>/units/<corpus>, as its name
            # says: what stands before it is the old folder.
            former = {
                location.removesuffix(f"/{name.removeprefix(EXPERIMENT)}")
                for name, location in experiments
                if name.startswith(EXPERIMENT) and location.startswith("file:")
                and location.endswith(f"/{name.removeprefix(EXPERIMENT)}")
            } - {here}
            for old in sorted(former):
                for table, column in _PATHS:
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? || substr({column}, ?)"
                        f" WHERE substr({column}, 1, ?) = ?",
                        (here, len(old) + 1, len(old) + 1, f"{old}/"),
                    )
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{found.database}: expected MLflow's SQLite database, but {error}; "
            "move the file away, or close what holds it, and run `dvc repro`"
        ) from None


def ui_command(root: Path, port: int = 5000) -> list[str]:
    """The command of MLflow's page, for this machine alone; a folder that moved is mended first.

    It is a whole tracking server: clients that log to it keep artifacts in the same folder.
    raises: InputError if MLFLOW_TRACKING_URI names a server, which has a page of its own.
    """
    found = place(root)
    if found.artifacts is None:
        raise InputError(
            f"MLFLOW_TRACKING_URI names {found.shown}, which shows its own page: open it in a "
            "browser, or unset the variable to see the project's own store"
        )
    prepare(found)
    return [
        "env", *(f"{name}={value}" for name, value in ENVIRONMENT.items()),
        # Background jobs serve features that are not used here, and take processes of their own.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false",
        # Its assistant runs programs for whoever asks: no one but this machine may.
        "MLFLOW_ENABLE_REMOTE_ASSISTANT=false", "DO_NOT_TRACK=true",
        sys.executable, "-m", "mlflow", "server", "--host", HOST,
        "--port", str(port), "--workers", "1",
        "--backend-store-uri", found.uri, "--artifacts-destination", found.artifacts.as_uri(),
    ]


def require_free(port: int) -> None:
    """Hold that a server can listen on a port of this machine.

    raises: InputError if another program does, or the system does not let this one.
    """
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # As servers do: what a closed one leaves behind for a minute is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"port {port} of {HOST} cannot be used: {error.strerror}; name another one, "
                f"e.g. --port {port + 1 if 1024 <= port < 65535 else 5001}"
            ) from None


def serve(command: Sequence[str]) -> int:
    """Run a server until it ends or this process is asked to (SIGINT, SIGTERM, SIGHUP).

    The server and its workers are a process group of their own: the request is passed on to all of
    them, a second one and 5 s of patience end what is left, and none outlives this call.
    returns: 0 if it was asked to end, else the server's own exit code (1 if a signal killed it).
    """
    asked: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def send(number: int) -> None:
        for child in started:
            with suppress(ProcessLookupError, PermissionError):  # the group is gone
                os.killpg(child.pid, number)

    def stop(number: int, _: FrameType | None) -> None:
        asked.append(number)
        send(signal.SIGTERM if len(asked) == 1 else signal.SIGKILL)
        if len(asked) == 1:
            patience.start()

    patience = threading.Timer(PATIENCE_SECONDS, send, [signal.SIGKILL])
    patience.daemon = True
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # Before the server starts: a signal in between must find someone who passes it on.
    former = {number: signal.signal(number, stop) for number in signals}
    try:
        started.append(subprocess.Popen(command, start_new_session=True))
        if asked:
            send(signal.SIGTERM)
        code = started[0].wait()
        # Workers were asked at the same time. Some systems keep ended orphans listed: no long wait.
        deadline = time.monotonic() + PATIENCE_SECONDS / 5
        send(signal.SIGTERM)
        while _any_left(started[0].pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        send(signal.SIGKILL)
    finally:
        patience.cancel()
        for number, handler in former.items():
            signal.signal(number, handler)
    return 0 if asked else max(code, 0) or int(code < 0)


def _any_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _sqlite(root: Path) -> str:
    path = (root.resolve() / "mlruns" / "mlflow.db").as_posix()
    # In a URI ?, # and % mean something else; other characters stand as they are.
    return "sqlite:///" + "".join(quote(c) if c in "?#%" else c for c in path)

"""Where MLflow's store lies, and what makes it survive that the project's folder moves.

The default is a SQLite database `mlruns/mlflow.db` with artifacts under `mlruns/artifacts`, both in
the project's root; MLFLOW_TRACKING_URI names another store. MLflow writes absolute paths of
artifacts into its database: where a folder was moved or copied, they are corrected before the
database is opened.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from spanwise.errors import InputError

EXPERIMENT = "spanwise/"
"""What every experiment's name begins with; the corpus follows."""

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
            # One of ours lies in <artifacts>/<corpus>: what stands before it is the old folder.
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
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1",
        "--port", str(port), "--workers", "1",
        "--backend-store-uri", found.uri, "--artifacts-destination", found.artifacts.as_uri(),
    ]


def _sqlite(root: Path) -> str:
    path = (root.resolve() / "mlruns" / "mlflow.db").as_posix()
    # In a URI ?, # and % mean something else; other characters stand as they are.
    return "sqlite:///" + "".join(quote(c) if c in "?#%" else c for c in path)

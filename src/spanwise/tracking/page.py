"""What a person is told of MLflow's page once it answers: addresses of views, and a browser."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from spanwise.params import Params
from spanwise.tracking.place import EXPERIMENT
from spanwise.tracking.views import SHARED, searches, views

PATIENCE_SECONDS = 120.0
"""How long a server may take until it answers; its first start makes a database."""

_PAUSE_SECONDS, _ANSWER_SECONDS = 0.3, 30.0
# Whatever stands between this machine and others has no part in what it asks itself.
_DIRECT = build_opener(ProxyHandler({}))


def addresses(server: str, params: Params) -> list[tuple[str, str]]:
    """The views that each corpus's experiment holds, asked of a server that answers.

    server:  its address, without a slash at the end.
    returns: (corpus and title, address), in the order of params.yaml; none for a corpus whose
             results are not tracked yet.
    """
    found = []
    for corpus in params.corpora:
        query = urlencode({"experiment_name": f"{EXPERIMENT}{corpus}"})
        try:
            with _DIRECT.open(
                f"{server}/api/2.0/mlflow/experiments/get-by-name?{query}", timeout=_ANSWER_SECONDS
            ) as answer:
                experiment = json.load(answer)["experiment"]
        except HTTPError as error:
            if error.code != 404:
                raise
            continue
        held = {tag["key"] for tag in experiment.get("tags", [])}
        found += [
            (f"{corpus}: {view.title}", server + view.path(experiment["experiment_id"]))
            for view in views(params) if f"{SHARED}{view.key}" in held
        ]
    return found


def tell(server: str, params: Params, say: Callable[[str], None], *, show: bool) -> None:
    """Wait until a server answers, say where its views are, and open the first one.

    show: whether to open a browser where `may_open` allows one.
    """
    try:
        if not _answers(server):
            return
        found = addresses(server, params)
    except OSError:  # it has ended meanwhile, and said why itself
        return
    for title, address in found:
        say(f"{title}\n  {address}")
    if not found:
        say("no runs yet: `dvc repro` tracks finished results")
    if show and may_open():
        with suppress(webbrowser.Error):
            webbrowser.open(found[0][1] if found else f"{server}/#/experiments")


def tell_beside(server: str, params: Params, say: Callable[[str], None], *, show: bool) -> None:
    """The same, while the server runs in the foreground; it ends with the program."""
    threading.Thread(
        target=tell, args=(server, params, say), kwargs={"show": show}, daemon=True
    ).start()


def may_open() -> bool:
    """Whether a browser of its own window can be opened, and a person sits there to see it.

    Not where output goes to a file or CI runs, and not a browser that would take the terminal.
    """
    display = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    return sys.stdout.isatty() and not os.environ.get("CI") and display


def search_strings(params: Params) -> str:
    """What to type into the search box of an experiment, with this study's names."""
    found = searches(params)
    width = max(map(len, found))
    return "\n".join(f"{title:{width}}  {search}" for title, search in found.items())


def _answers(server: str) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), _DIRECT.open(f"{server}/health", timeout=_ANSWER_SECONDS):
            return True
        time.sleep(_PAUSE_SECONDS)
    return False

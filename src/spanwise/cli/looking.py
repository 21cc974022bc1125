"""What came of a run: show, report, ui."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.shared import AsJson, app, names_in


@app.command(epilog="Example: spanwise show s-d01 --condition A3 --condition G3 --top 1")
def show(
    question_id: Annotated[str, typer.Argument(help="A question of any corpus in params.yaml.")],
    condition: Annotated[
        list[str] | None,
        typer.Option(help="Only this condition or segmentation; repeat it.",
                     autocompletion=names_in("conditions")),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="By default the primary cell's.", autocompletion=names_in("embedders")),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Chunks of each condition.")] = 3,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Retrieve now and say whether the record agrees.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was retrieved for a question, evidence marked.

    Under each condition, and each segmentation of the study of units.
    """
    from spanwise import params
    from spanwise import show as door

    asked = (params.load(), question_id, embedder, condition or [], top, fresh)
    typer.echo(door.as_json(*asked) if as_json else door.show(*asked))


@app.command(epilog="Example: spanwise report --json")
def report(as_json: AsJson = False) -> None:
    """Build reports/ anew from the artifacts that are there.

    A corpus that has not run to its end is left out, and named on the page and here. The stage
    `report` of `dvc repro` leaves none out: it fails.
    """
    from spanwise import params
    from spanwise.reporting import build, terminal

    settings = params.load()
    records, left_out = build.report_finished(Path(), settings)
    if as_json:
        metrics = (build.REPORTS / "metrics.json").read_text(encoding="utf-8")
        typer.echo(metrics, nl=False)
    else:
        typer.echo(terminal.verdicts(records, settings, build.PAGE))
    for name, why in left_out.items():
        typer.echo(f"note: {name} is left out: {why}", err=True)


@app.command(epilog="Example: spanwise ui --port 5001 --no-open")
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 5000,
    browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the first view in a browser.")
    ] = True,
    strings: Annotated[
        bool, typer.Option("--searches", help="Print search strings for runs and stop.")
    ] = False,
) -> None:
    """Serve MLflow's page over mlruns/ on this machine alone.

    It says where its saved views are.
    """
    from spanwise import params
    from spanwise.tracking import page, place

    settings = params.load()  # outside a project nothing is created
    if strings:
        typer.echo(page.search_strings(settings))
        return
    place.require_free(port)
    command = place.ui_command(Path.cwd(), port)
    server = f"http://{place.HOST}:{port}"
    typer.echo(f"{server}/#/experiments  (Ctrl-C stops it)")
    sys.stdout.flush()
    page.tell_beside(server, settings, typer.echo, show=browser)
    raise typer.Exit(place.serve(command))

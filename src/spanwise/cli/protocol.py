"""What is fixed before the strong embedder runs: register, and its four commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.shared import AsJson, DryRun, app

if TYPE_CHECKING:
    from spanwise.params import Params

register_app = typer.Typer(
    invoke_without_command=True,
    help="Fix a study before the strong embedder first runs.\n\nAlone it does what `make` does.",
    epilog="Example: spanwise register --reason 'the notes, before their first run'",
)
app.add_typer(register_app, name="register")

Reason = Annotated[str, typer.Option(help="Why an entry is amended; the first needs none.")]


def _encoder() -> Path | None:
    """The folder of the strong embedder, where it is on this machine."""
    from spanwise import models, params

    settings = params.load()
    return models.find(settings.embedders[settings.primary.embedder].model)


def _require_unseen(settings: Params) -> None:
    """Refuse corpora that no entry knows and of whose study a sweep has looked at documents."""
    from spanwise import registration
    from spanwise.errors import RegistrationError
    from spanwise.sweep import looked

    entries = registration.load()
    for corpus in settings.corpora:
        if registration.counting(entries, corpus, registration.digests_of(corpus)) is None:
            looked.refuse(corpus, RegistrationError, "is not registered")


@register_app.callback()
def register(context: typer.Context, reason: Reason = "", dry_run: DryRun = False) -> None:
    command = context.invoked_subcommand
    if command is None:
        register_make(reason, dry_run)
    elif reason or dry_run:
        option = "--reason" if reason else "--dry-run"
        raise typer.BadParameter(f"{option} stands behind the command: register {command} {option}")


@register_app.command("make", epilog="Example: spanwise register make")
def register_make(reason: Reason = "", dry_run: DryRun = False) -> None:
    """Append an entry for the corpora of params.yaml."""
    from spanwise import params, registration

    settings = params.load()
    _require_unseen(settings)
    typer.echo(registration.register_now(settings, reason, dry_run, _encoder()))


@register_app.command("show", epilog="Example: spanwise register show --json")
def register_show(
    as_json: AsJson = False,
) -> None:
    """Show each entry in plain words.

    What it fixes, for which corpora, and why it was made.
    """
    from spanwise.registration import door

    typer.echo(door.as_json() if as_json else door.shown())


@register_app.command("check", epilog="Example: spanwise register check && dvc repro")
def register_check(as_json: AsJson = False) -> None:
    """Compare each corpus with its entry.

    It says what git proves of the order, too. Exit code 1 for a deviation.
    """
    from spanwise import params
    from spanwise.registration import door

    found = door.check(params.load(), encoder=_encoder())
    typer.echo(found.as_json() if as_json else found.text)
    if not found.fine:
        raise typer.Exit(1)


@register_app.command("amend", epilog="Example: spanwise register amend --reason 'another seed'")
def register_amend(
    reason: Annotated[str, typer.Option(help="Why; the entry keeps it.")],
    dry_run: DryRun = False,
) -> None:
    """Append an entry to those that are there.

    The first that names a corpus still counts.
    """
    from spanwise import params
    from spanwise.registration import door

    settings = params.load()
    _require_unseen(settings)
    typer.echo(door.amend(settings, reason, dry_run, _encoder()))

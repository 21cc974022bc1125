"""What a DVC remote holds: remote check, remote mend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.shared import AsJson, app

if TYPE_CHECKING:
    from spanwise.remotes.door import Result

remote_app = typer.Typer(
    no_args_is_help=True, help="What a DVC remote lacks, or holds damaged, and the mend.",
)
app.add_typer(remote_app, name="remote")

Name = Annotated[
    str | None, typer.Option("--remote", help="A remote of DVC's settings; else the default one.")
]
Deep = Annotated[
    bool,
    typer.Option("--deep", help="Fetch and hash every object; else sizes decide which."),
]


def _tell(found: Result, as_json: bool) -> None:
    typer.echo(found.as_json() if as_json else found.text)
    for note in [] if as_json else found.seen.notes:
        typer.echo(f"note: {note}", err=True)
    if not found.fine:
        raise typer.Exit(1)


@remote_app.command("check", epilog="Examples: spanwise remote check; spanwise remote check --deep")
def remote_check(name: Name = None, deep: Deep = False, as_json: AsJson = False) -> None:
    """Ask a remote for every object that is named here.

    By dvc.lock and data.dvc; exit code 1 for a fault. Nothing is written. Without --deep it costs
    a listing and finds what is missing or half there; with it, all that the remote holds is
    fetched, and a changed byte is found.
    """
    from spanwise.remotes import door

    _tell(door.check(name, deep), as_json)


@remote_app.command("mend", epilog="Example: spanwise remote mend --deep --dry-run")
def remote_mend(
    name: Name = None,
    deep: Deep = False,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Take out damaged objects without a sound copy here, the "
                     "lists that name them, and from the bundled remote what is foreign."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be sent or taken out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send sound copies of what a remote lacks or holds damaged.

    Exit code 1 if a fault is left. A copy is hashed before it is sent and fetched once more
    afterwards. Lists and foreign objects are taken out only after a copy of each is in the local
    cache; damaged objects are taken out for good.
    """
    from spanwise.remotes import door

    _tell(door.mend(name, deep, remove, dry_run), as_json)

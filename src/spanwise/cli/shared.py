"""What the commands share: the app itself, options of many of them, what the shell completes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from spanwise.errors import SpanwiseError

app = typer.Typer(
    help="Which way of cutting, labelling and routing text retrieves the evidence?",
    epilog="Exit codes: 0 fine; 1 a finding, or it failed; 2 a mistake in what was given; 3 "
           "something cannot be reached. Example: spanwise doctor && dvc repro",
    no_args_is_help=True,
    # Plain help and plain errors: no rich to import, nothing to wrap a path in.
    rich_markup_mode=None, pretty_exceptions_enable=False,
)


def names_in(part: str) -> Callable[[str], list[str]]:
    """What the shell completes: the names of one part of params.yaml, none where it is no study."""
    def begin(incomplete: str) -> list[str]:
        from spanwise import params

        try:
            names = list(getattr(params.load(), part))
        except SpanwiseError:
            return []
        return [name for name in names if name.startswith(incomplete)]
    return begin


def profiles_begun(incomplete: str) -> list[str]:
    names = sorted(path.stem for path in Path("profiles").glob("*.yaml"))
    return [name for name in names if name.startswith(incomplete)]


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and write nothing.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from spanwise import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    pass

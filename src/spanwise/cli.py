"""The command line. A command is a thin function: it imports its room when it runs, calls it and
prints. Every SpanwiseError becomes one line on stderr and an exit code in `main`, nowhere else.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spanwise.errors import SpanwiseError

app = typer.Typer(
    help="Which way of cutting, labelling and routing text retrieves the evidence?",
    add_completion=False, no_args_is_help=True,
    # Plain help and plain errors: no rich to import, nothing to wrap a path in.
    rich_markup_mode=None, pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)
    ] = False,
) -> None:
    if version:
        from spanwise import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def score(
    questions: Annotated[
        Path, typer.Option(help="JSON lines: question_id, doc_id, text, evidence, bundles.")
    ],
    chunks: Annotated[
        Path, typer.Option(help="JSON lines: chunk_id, doc_id, start, end, tokens, prefix_tokens.")
    ],
    run: Annotated[Path, typer.Option(help="TREC run: question Q0 chunk rank score tag.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the scores here instead of printing them.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print means with their n, and every count.")
    ] = False,
) -> None:
    """Score any retriever's run: every measure of every question, as JSON lines."""
    from spanwise.measures import door
    from spanwise.measures.files import score_lines

    scores = door.score_files(questions, chunks, run)
    if out is not None:
        door.write_scores(out, scores, (questions, chunks, run))
    if summary:
        typer.echo(door.summary(scores))
        return
    if out is None:
        typer.echo(score_lines(scores), nl=False)
    for note in door.notes(scores):
        typer.echo(f"note: {note}", err=True)


@app.command()
def compare(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Two files of scores, A and B.", metavar="A B")
    ] = None,
    measure: Annotated[str, typer.Option(help="The measure to compare.")] = "cov_ndcg@10",
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B", help="One more contrast of the family; repeat it."),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Draws of the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
) -> None:
    """Compare scores, paired by question: delta = A - B, intervals over documents, Holm."""
    from spanwise.statistics import door

    contrasts = door.compare_files(
        door.named_pairs(files or [], pair or []), measure, iterations, seed
    )
    if not as_json:
        typer.echo(door.as_table(contrasts, measure, iterations))
        return
    typer.echo(door.as_json(contrasts))
    for note in door.notes(contrasts):
        typer.echo(f"note: {note}", err=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    returns: 0, 2 for a user's mistake, 3 for something that cannot be reached, else 1.
    """
    for stream in (sys.stdout, sys.stderr):
        # Ids are UTF-8 whatever the terminal says; a name that is no text is shown escaped.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app(None if arguments is None else list(arguments), prog_name="spanwise")
    except SpanwiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())

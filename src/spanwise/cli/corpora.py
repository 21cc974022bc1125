"""A person's corpora and settings: ask, add, doctor, sweep, profile."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.shared import AsJson, DryRun, app, names_in, profiles_begun

ParsedCorpus = Annotated[
    str, typer.Argument(help="A corpus of params.yaml, parsed already.",
                        autocompletion=names_in("corpora")),
]


@app.command(epilog="Example: spanwise add notes ~/notes --questions ~/notes-questions.csv")
def add(
    name: Annotated[str, typer.Argument(help="Of the new corpus: lower-case letters, digits, -.")],
    path: Annotated[Path, typer.Argument(help="A folder of documents, a set, a dump, or a file.")],
    questions: Annotated[
        str | None,
        typer.Option(help="A .jsonl, .csv or .yaml file, or `written`: by the language model."),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="<markdown|text|folder|qasper|mediawiki|chroma|beir|snippets>",
            help="Who reads it; else as its files tell.",
        ),
    ] = None,
    inducer: Annotated[
        str,
        typer.Option(metavar="<segmenter|hybrid|llm>", help="segmenter needs no language model."),
    ] = "segmenter",
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Of the reader; repeat it.")
    ] = None,
    contexts: Annotated[
        bool, typer.Option("--contexts", help="The language model writes a context a chunk.")
    ] = False,
    units: Annotated[
        bool, typer.Option("--units", help="The study of exact evidence units runs too.")
    ] = False,
    demonstration: Annotated[
        bool, typer.Option("--demonstration", help="Its results prove nothing, and say so.")
    ] = False,
    remote: Annotated[
        str | None,
        typer.Option(help="Where `dvc push` goes: a folder outside the project or an address."),
    ] = None,
    skip: Annotated[
        bool, typer.Option("--skip", help="Leave out files that cannot be read, each named.")
    ] = False,
    docling: Annotated[
        str | None,
        typer.Option(metavar="KINDS", help="Turn these into Markdown first, by your own docling: "
                                           "pdf,docx,pptx,xlsx,html,odt,epub, or all.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take your own documents and questions in as a corpus.

    They are copied, tracked by DVC and entered in params.yaml, all of it or nothing.
    """
    from spanwise.adding import converted, door

    made = door.plan(door.Wish(
        name, path, questions, reader, inducer, demonstration, units, contexts,
        door.options_of(option or []), remote, skip, converted.suffixes_of(docling),
    ))
    for note in made.notes:
        typer.echo(f"note: {note}", err=True)
    if not dry_run:
        door.carry_out(made)
    typer.echo(made.as_json(not dry_run) if as_json else made.shown(not dry_run))


@app.command(epilog="Example: spanwise ask notes --worksheet notes.yaml")
def ask(
    name: ParsedCorpus,
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked and written; do neither.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a corpus's questions, or let people write them.

    They are made as params.yaml says; the funnel of what was written is printed.
    """
    from spanwise import params
    from spanwise.writing import door

    said = door.asked(params.load(), name, worksheet, out, per_type, seed, dry_run)
    typer.echo(said.as_json() if as_json else said.text)
    for note in said.notes:
        typer.echo(f"note: {note}", err=True)


@app.command(epilog="Examples: spanwise doctor && dvc repro; spanwise doctor --deep --dry-run")
def doctor(
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Hash DVC's local cache anew too, and remove what is damaged."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --deep: name what is damaged and leave it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check machine, models, server, remotes and corpora.

    Exit code 1 for a problem. It says what is left to compute, and about how long that takes
    here. No model runs.
    """
    from spanwise import params
    from spanwise.doctor import door

    found = door.examine(params.load(), deep, dry_run)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    typer.echo(door.as_json(found) if as_json else door.as_text(found, colour))
    if dry_run and not deep:
        typer.echo("note: only --deep removes anything; --dry-run was not used", err=True)
    if found.problems:
        raise typer.Exit(1)


@app.command(epilog="Example: spanwise sweep notes --trials 100 --workers 4")
def sweep(
    corpus: ParsedCorpus,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Stop at this many, earlier ones among them.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; with one the sweep repeats itself exactly.")
    ] = 1,
    embedder: Annotated[
        str | None,
        typer.Option(help="Of params.yaml, or bm25; never the primary cell's. With --show: only "
                          "its trials.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print what an earlier call found, and run nothing.")
    ] = False,
    track: Annotated[
        bool, typer.Option("--track/--no-track", help="Log each trial to MLflow.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Explore sizes, depths and routing apart from the study.

    Trials run on documents that the corpus has for that alone, and all of it is exploratory.
    """
    from spanwise import params
    from spanwise.sweep import door

    settings = params.load()
    if show:
        said = door.show(settings, corpus, embedder)
    else:
        said = [door.sweep(settings, corpus, trials, workers, embedder)]
    typer.echo(door.as_json(said) if as_json else "\n\n".join(one.text for one in said))
    for note in dict.fromkeys(note for one in said for note in one.notes):
        typer.echo(f"note: {note}", err=True)
    if track and not show:
        from spanwise.tracking import track_sweeps

        done = track_sweeps(Path(), settings, corpus)
        typer.echo(f"note: {done.added} runs added to MLflow, {done.kept} kept", err=True)


@app.command(epilog="Example: spanwise profile minilm --corpus notes --dry-run")
def profile(
    name: Annotated[
        str,
        typer.Argument(help="A file of profiles/, without .yaml.", autocompletion=profiles_begun),
    ],
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="Keep this corpus alone; repeat it.", autocompletion=names_in("corpora")),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if params.yaml has uncommitted changes.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would change, and write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Apply a whole set-up of profiles/ to params.yaml.

    `study` is the published one, `minilm` your own corpus on a small machine. Comments and lines
    that it does not change stay.
    """
    from spanwise import profiles

    planned = profiles.plan(name, force or dry_run, corpora=corpus or [])
    for note in planned.notes:
        typer.echo(f"note: {note}", err=True)
    told = planned.as_json(not dry_run) if as_json else None
    if not dry_run:
        planned.write()
    if told is not None:
        typer.echo(told)
    elif dry_run:
        typer.echo(planned.difference(), nl=False)
    else:
        typer.echo(f"params.yaml now has {name}'s {', '.join(planned.changed)}; run `dvc repro`")

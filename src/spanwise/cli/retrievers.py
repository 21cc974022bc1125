"""Anybody's retriever and splitter: export, score, compare, chunk, spans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spanwise.cli.shared import app, names_in


@app.command(epilog="Example: spanwise export notes --out q.jsonl --text-out texts.jsonl")
def export(
    name: Annotated[
        str, typer.Argument(help="A corpus of params.yaml, parsed and asked already.",
                            autocompletion=names_in("corpora")),
    ],
    representation: Annotated[
        Literal["body", "raw"] | None,
        typer.Option(help="What offsets are of; else raw where the corpus has it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the questions here instead of printing them.")
    ] = None,
    text_out: Annotated[
        Path | None, typer.Option(help="Write the texts here: JSON lines (doc_id, text).")
    ] = None,
) -> None:
    """Hand out a corpus's questions and texts.

    Both are JSON lines, for your own retriever, `spanwise score` and `spanwise spans`.
    """
    from spanwise import params
    from spanwise.errors import InputError
    from spanwise.export import export as exported
    from spanwise.schemas import write_out

    params.load().corpus(name)
    if text_out is not None and text_out.suffix != ".jsonl":
        raise InputError(f"--text-out {text_out}: expected a name that ends in .jsonl")
    if out is not None and text_out is not None and out.resolve() == text_out.resolve():
        raise InputError(f"--out and --text-out are both {out}; name two files")
    made = exported(name, representation)
    if text_out is not None:
        write_out(text_out, made.texts, (), "--text-out")
    if out is not None:
        write_out(out, made.questions, ())
    else:
        typer.echo(made.questions, nl=False)
    for note in made.notes:
        typer.echo(f"note: {note}", err=True)


@app.command(epilog="Example: spanwise score --questions q.jsonl --chunks c.jsonl --run r.trec")
def score(
    questions: Annotated[
        Path, typer.Option(help="JSON lines: question_id, doc_id, text, evidence, bundles.")
    ],
    chunks: Annotated[
        Path, typer.Option(help="JSON lines: chunk_id, doc_id, start, end, tokens, prefix_tokens.")
    ],
    run: Annotated[
        Path, typer.Option(help="TREC run, ordered by score: question Q0 chunk rank score tag.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write the scores here instead of printing them.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print means with their n, and every count.")
    ] = False,
) -> None:
    """Score any retriever's run.

    Every measure of every question, as JSON lines.
    """
    from spanwise.measures import door
    from spanwise.measures.files import score_lines
    from spanwise.schemas import write_out

    scores = door.score_files(questions, chunks, run)
    if out is not None:
        write_out(out, score_lines(scores), (questions, chunks, run))
    for note in door.rank_notes(run):
        typer.echo(f"note: {note}", err=True)
    if summary:
        typer.echo(door.summary(scores))
        return
    if out is None:
        typer.echo(score_lines(scores), nl=False)
    for note in door.notes(scores):
        typer.echo(f"note: {note}", err=True)


@app.command(epilog="Example: spanwise compare mine.jsonl theirs.jsonl --measure cov_ndcg@10")
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
    """Compare two runs' scores, paired by question.

    delta = A - B, with intervals over documents and Holm's correction.
    """
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


@app.command(epilog="Example: spanwise chunk notes.md --segmentation windows --size 48")
def chunk(
    file: Annotated[
        Path,
        typer.Argument(help="A .md, .txt, .rst, .html, .pdf, .docx, .wikitext or QASPER .json."),
    ],
    segmentation: Annotated[
        str,
        typer.Option(metavar="<native|fixed|blocks|sections|windows>", help="How it is cut."),
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
        typer.Option(metavar="<body|raw>",
                     help="Else body for native and fixed, raw for the others."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="<markdown|text|rst|html|pdf|docx|wikitext|qasper>",
                     help="How it is read; else as its name says."),
    ] = None,
    text_out: Annotated[
        Path | None, typer.Option(help="Write the text that the offsets index here.")
    ] = None,
) -> None:
    """Chunk one file, as JSON lines.

    Of doc_id, start, end (code points), tokens, path and chunk_id.
    """
    from spanwise import models
    from spanwise.chunking import door
    from spanwise.schemas import write_out

    rows, texts = door.chunk_file(
        file, segmentation, 250 if size is None else size, overlap,
        models.tokenizer_named(tokenizer), representation, format,
    )
    if text_out is not None:
        write_out(text_out, door.text_out(texts), (file,), "--text-out")
    typer.echo(door.as_lines(rows), nl=False)
    if overlap and segmentation != "windows":
        typer.echo("note: only windows overlap; --overlap was not used", err=True)
    if size is not None and segmentation not in ("fixed", "windows"):
        typer.echo("note: only fixed chunks and windows have a size; --size was not used", err=True)


@app.command(epilog="Example: spanwise spans strings.jsonl --texts ~/notes --out chunks.jsonl")
def spans(
    chunks: Annotated[Path, typer.Argument(help="JSON lines: doc_id, text; in order of the text.")],
    texts: Annotated[
        Path, typer.Option(help="A folder of documents, JSON lines (doc_id, text), or one file.")
    ],
    whitespace: Annotated[
        Literal["exact", "collapsed"],
        typer.Option(help="collapsed: any run of white space stands for any other."),
    ] = "exact",
    overlap: Annotated[
        int | None, typer.Option(min=0, help="Code points that neighbours share at most.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the chunks here instead of printing them.")
    ] = None,
) -> None:
    """Find the spans of chunks that are strings, exactly.

    Or an error names the chunk and why.
    """
    from spanwise.chunking import strings
    from spanwise.chunking.door import as_lines
    from spanwise.schemas import write_out

    rows = strings.spans_of(chunks, texts, whitespace, overlap)
    if out is None:
        typer.echo(as_lines(rows), nl=False)
    else:
        write_out(out, as_lines(rows), (chunks, texts))

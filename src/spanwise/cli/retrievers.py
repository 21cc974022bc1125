"""Anybody's retriever and splitter: score, compare, chunk, spans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.shared import app


@app.command(epilog="Example: spanwise score --questions q.jsonl --chunks c.jsonl --run r.trec")
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


@app.command(epilog="Example: spanwise chunk notes.md --segmentation windows --size 48")
def chunk(
    file: Annotated[
        Path,
        typer.Argument(help="A .md, .txt, .rst, .html, .pdf, .docx, .wikitext or QASPER .json."),
    ],
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
        str | None,
        typer.Option(help="markdown, text, rst, html, pdf, docx, wikitext, qasper; else by name."),
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


@app.command(epilog="Example: spanwise spans strings.jsonl --texts ~/notes --out chunks.jsonl")
def spans(
    chunks: Annotated[Path, typer.Argument(help="JSON lines: doc_id, text; in order of the text.")],
    texts: Annotated[
        Path, typer.Option(help="A folder of text files, JSON lines (doc_id, text), or one text.")
    ],
    whitespace: Annotated[
        str, typer.Option(help="exact, or collapsed: any run of white space for any other.")
    ] = "exact",
    overlap: Annotated[
        int | None, typer.Option(min=0, help="Code points that neighbours share at most.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the chunks here instead of printing them.")
    ] = None,
) -> None:
    """Find the spans of chunks that are strings: exactly, or an error names the chunk and why."""
    from spanwise.chunking import strings

    rows = strings.spans_of(chunks, texts, whitespace, overlap)
    if out is None:
        typer.echo(strings.as_lines(rows), nl=False)
    else:
        strings.write_spans(out, rows, (chunks, texts))

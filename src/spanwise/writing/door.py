"""`spanwise ask`: a corpus's questions made, or a worksheet drawn and taken back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import layout, schemas
from spanwise.corpora.readers import document_files
from spanwise.errors import InputError, QuestionError
from spanwise.llm.client import settings_of
from spanwise.params import Params, WritingSettings
from spanwise.text.lists import read_list
from spanwise.writing.asking import (
    Parsed,
    drawn,
    judged,
    limits,
    make,
    parsed,
    require_none,
    without_model,
)
from spanwise.writing.funnel import Record
from spanwise.writing.rehearsal import rehearse
from spanwise.writing.sampling import TYPES
from spanwise.writing.worksheet import (
    Entry,
    Sheet,
    Source,
    read_sheet,
    write_questions,
    write_worksheet,
)

QUESTIONS = Path("questions")
"""The folder of question files, which the stage `ask` depends on."""

_DRY = "Nothing was asked and nothing written: this was a dry run."


@dataclass(frozen=True, slots=True)
class Said:
    """What a call did, for a person and for a program, and what to bear in mind, a line each."""

    text: str
    data: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def as_json(self) -> str:
        """The data as one JSON object."""
        return json.dumps(self.data, indent=1, ensure_ascii=False, allow_nan=False)


def asked(
    params: Params, name: str, worksheet: Path | None, out: Path | None, per_type: int | None,
    seed: int | None, dry_run: bool = False,
) -> Said:
    """Do what the stage `ask` does; or draw a worksheet, or take one back where it is there.

    worksheet:      a YAML file that is drawn or taken back; or a question file, which is judged.
    out:            the question file that it becomes [questions/NAME.jsonl; a question file in
                    questions/ stays what it is].
    per_type, seed: of the spans that a worksheet has, instead of those in params.yaml.
    dry_run:        say what would be asked or written; ask nothing and write nothing.
    raises:         InputError for options that do not fit together; what asking and reading raise.
    """
    params.corpus(name)
    if worksheet is None:
        given = {"--out": out, "--per-type": per_type, "--seed": seed}
        if wrong := [option for option, value in given.items() if value is not None]:
            raise InputError(
                f"{', '.join(wrong)}: only with --worksheet; what `dvc repro ask` draws is set "
                "under `writing` in params.yaml"
            )
        return _rehearsed(params, name) if dry_run else _stage(params, name)
    found = parsed(name)
    require_none(found, params)
    if worksheet.exists():
        own = out or _question_file(worksheet) or QUESTIONS / f"{name}.jsonl"
        said = _taken(params, found, worksheet, own, dry_run)
        unused = [option for option, value in (("--per-type", per_type), ("--seed", seed))
                  if value is not None]
        notes = (f"{worksheet} is drawn already; {', '.join(unused)} not used",) if unused else ()
        return Said(said.text, said.data, (*said.notes, *notes))
    changes = {k: v for k, v in (("per_type", per_type), ("seed", seed)) if v is not None}
    settings = params.writing.model_copy(update=changes)
    return _drawn(found, settings, worksheet, _source(params, name), dry_run)


def _stage(params: Params, name: str) -> Said:
    report = make(name, params, quiet=True).report
    return Said("\n".join(_told(name, report)), {"corpus": name, **report})


def _rehearsed(params: Params, name: str) -> Said:
    """What `_stage` would ask, or what it would leave where no model is asked."""
    found = parsed(name)
    source = params.corpus(name).questions
    if source is not None:
        require_none(found, params)
    if source != "written":
        report = without_model(found, params).report
        lines = [*_told(name, report), "", f"no language model is asked. {_DRY}"]
        return Said("\n".join(lines), {"corpus": name, "dry_run": True, **report})
    its = rehearse(found, params.writing, settings_of(params), layout.stage("ask", name))
    where = f"at {its.server}" if its.server else "on a server that would be started here"
    passages = ", ".join(f"{n} {kind}" for kind, n in its.passages.items())
    time = (
        "nothing is left to ask" if not its.to_ask
        else "a server's pace is its own: its time is not known here" if its.seconds is None
        else f"about {max(1, round(its.seconds / 60))} min on two cores"
    )
    lines = [
        f"{name}: {its.model}, {where}",
        f"{sum(its.passages.values())} passages of {its.documents} of {len(found.documents)} "
        f"documents: {passages}",
        f"{its.kept} answers are kept already, about {its.to_ask} requests are left (a wording of "
        "no use is asked for once more, one that does not pass is not paraphrased)",
        time, _DRY,
    ]
    return Said("\n".join(lines), {
        "corpus": name, "dry_run": True, "origin": "written", "documents": len(found.documents),
        "documents_asked_about": its.documents, "passages": its.passages,
        "could not be drawn": its.missing, "model": its.model, "server": its.server,
        "answers_kept": its.kept, "requests_left": its.to_ask, "seconds": its.seconds,
    })


def _told(name: str, report: Mapping[str, Any]) -> list[str]:
    lines = [f"{name}: {report['questions']} questions, {report['origin']}"]
    if "funnel" in report:
        lines += ["", *_funnel_lines(report)]
    else:
        lines += [f"{n:>7}  {kind}" for kind, n in report["questions by type"].items()]
    return lines


def _drawn(
    found: Parsed, settings: WritingSettings, path: Path, source: Source, dry_run: bool
) -> Said:
    """Draw the spans and write the worksheet."""
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(f"--worksheet {path}: a worksheet is YAML; name it FILE.yaml")
    spans = drawn(found, settings)
    if not dry_run:
        schemas.write_text(path, write_worksheet(spans.samples, source, limits(settings)))
    counts: dict[str, int] = {kind: sum(s.type == kind for s in spans.samples) for kind in TYPES}
    missing: dict[str, int] = {kind: spans.missing[kind] for kind in TYPES}
    rows = {"drawn": counts, "could not be drawn": missing}
    lines = [
        f"{path} {'would be ' if dry_run else ''}written: {len(spans.samples)} samples of "
        f"{len({s.doc_id for s in spans.samples})} documents", "",
        *_table({step: {**row, "all": sum(row.values())} for step, row in rows.items()}), "",
        _DRY if dry_run
        else f"Fill it in and run `spanwise ask {found.name} --worksheet {path}` again.",
    ]
    return Said("\n".join(lines), {
        "corpus": found.name, "worksheet": str(path), "dry_run": dry_run, **rows,
    })


def _taken(params: Params, found: Parsed, path: Path, out: Path, dry_run: bool) -> Said:
    """Read a filled worksheet through both rounds and write its question file.

    A question file that is its own is left as it is: it may have more than this corpus knows of.
    """
    where = _place(out)
    sheet = read_sheet(path, found.documents)
    if not any(entry.question for entry in sheet.entries):
        raise QuestionError(f"{path}: no question is filled in; write some below `question: >-`")
    same = where.exists() and where.samefile(path)
    if not same:
        _keep_others(where, sheet)
    settings = params.writing
    records = sheet.records(limits(settings))
    finals, report = judged(records, settings, sheet)
    if not same and not dry_run:
        schemas.write_text(where, write_questions(sheet))
    rejected = list(_rejected(sheet.entries, records, settings))
    lines = [*_funnel_lines(report)]
    if rejected:
        lines += ["", f"{len(rejected)} rejected:"]
        lines += [f"  {r['id']}: {r['reason']}\n    {r['wording']}" for r in rejected]
    done = "read" if same else "would be written" if dry_run else "written"
    lines += ["", f"{where} {done}; {len(finals)} of its questions are used."]
    entry = f"questions: {where.as_posix()}"
    if dry_run:
        lines.append(_DRY)
    elif params.corpus(found.name).questions == where.as_posix():
        lines.append("params.yaml names it already: run `dvc repro`.")
    elif finals:
        lines.append(
            f"Put this line into params.yaml, below corpora.{found.name}, in place of any "
            f"`questions:` there:\n    {entry}"
        )
    notes = tuple(
        f"{n} entries about {doc_id!r} were left out: the corpus has no such document"
        for doc_id, n in sheet.left_out.items()
    )
    if sheet.source.corpus != found.name:
        notes += (f"{path} was drawn for corpus {sheet.source.corpus!r}; its spans fit",)
    return Said("\n".join(lines), {
        "corpus": found.name, "worksheet": str(path), "question_file": where.as_posix(),
        "params": entry, "dry_run": dry_run, **report, "rejected": rejected,
    }, notes)


def _place(out: Path) -> Path:
    """The question file's place, relative to the project.

    raises: InputError unless it lies in questions/ under a name that params.yaml may have.
    """
    inside = _question_file(out)
    if inside is None:
        raise InputError(
            f"--out {out}: expected a .jsonl file in {QUESTIONS}/, which the stage `ask` depends "
            "on, named with letters, digits, `_`, `.` and `-`"
        )
    if inside.exists() and not inside.is_file():
        raise InputError(f"--out {out} is no regular file; name a file")
    return inside


def _question_file(path: Path) -> Path | None:
    """A path relative to the project, if a question file may lie there."""
    here, place = Path.cwd().resolve(), path.resolve()
    inside = place.relative_to(here) if place.is_relative_to(here) else place
    return inside if re.fullmatch(r"questions/[\w./-]+\.jsonl", inside.as_posix()) else None


def _keep_others(out: Path, sheet: Sheet) -> None:
    """Refuse to write over questions that the sheet does not have.

    raises: QuestionError that says how many there are.
    """
    if not out.exists():
        return
    ids = {item.fields.get("id") for item in read_list(out, str(out), QuestionError)[1:]}
    if lost := ids - {entry.sample.sample_id for entry in sheet.entries if entry.question}:
        raise QuestionError(
            f"{out} has {len(lost)} questions that the worksheet does not have, e.g. "
            f"{min(map(str, lost))!r}; name another file with --out, or take {out} away"
        )


def _rejected(
    entries: Sequence[Entry], records: Sequence[Record], settings: WritingSettings
) -> Iterator[dict[str, str]]:
    """Each wording that did not pass, with its reason; entries left empty are counted elsewhere."""
    for entry, record in zip(entries, records, strict=True):
        if record.survived or not (entry.question or entry.paraphrase):
            continue
        # The rounds keep no wording that is none; the person wants to see it all the same.
        second = record.outcome in ("unanswered", "malformed again") or record.again is not None
        verdict = record.again or record.first
        kind = record.outcome.removesuffix(" again")
        reason = record.detail
        if kind == "unanswered":
            reason = "a paraphrase alone: no question is filled in"
        elif kind == "rouge-l" and verdict is not None:
            reason = f"ROUGE-L {verdict.rouge_l:.3f} is above {settings.rouge_l:g}"
        elif kind == "4-gram":
            reason = f"shares {record.detail!r} with its passage"
        elif kind == "named":
            reason = f"names what it should hint at: {record.detail}"
        yield {
            "id": entry.sample.sample_id, "outcome": record.outcome,
            "round": "paraphrase" if second else "question", "reason": reason,
            "wording": entry.paraphrase if second else entry.question,
        }


def _source(params: Params, name: str) -> Source:
    """What a sheet was drawn from: the corpus's one file, else its parsed documents."""
    corpus = params.corpus(name)
    files = document_files(corpus.reader, Path(corpus.path))
    if len(files) == 1:
        with files[0].open("rb") as stream:
            return Source(name, files[0].name, hashlib.file_digest(stream, "sha256").hexdigest())
    report = layout.read_report(layout.stage("parse", name) / "report.json")
    return Source(name, "documents", report["study"]["digests"]["documents"])


def _funnel_lines(report: Mapping[str, Any]) -> list[str]:
    """The funnel, why wordings were of no use, and the ROUGE-L of what ships, as lines."""
    lines = _table(report["funnel"])
    if report["unusable answers"]:
        lines += ["", "of no use:"]
        lines += [f"{n:>7}  {reason}" for reason, n in report["unusable answers"].items()]
    spread = report["rouge_l of finals"]
    lines += ["", "ROUGE-L of what is used, by quantile:"]
    rows = {key: {kind: spread[kind][key] for kind in spread} for key in spread["all"]}
    return lines + _table(rows)


def _table(rows: Mapping[str, Mapping[str, float | int | None]]) -> list[str]:
    """Rows by name, a column for each type and one for all."""
    first = max(len(name) for name in rows)
    widths = {kind: max(len(kind), 6) for kind in (*TYPES, "all")}
    lines = [" " * first + "".join(f"  {kind:>{width}}" for kind, width in widths.items())]
    for name, row in rows.items():
        cells = "".join(f"  {_cell(row[kind]):>{width}}" for kind, width in widths.items())
        lines.append(f"{name:<{first}}{cells}")
    return lines


def _cell(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)

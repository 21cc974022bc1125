"""chunks -> chunks with their prefixes; a language model writes the contexts that are wanted."""

from spanwise import layout, models, params, schemas
from spanwise.contexts import Asked, tally, write_contexts
from spanwise.documents.records import load_documents
from spanwise.labelling import NO_CONTEXTS, enough, label, wanting
from spanwise.llm.cache import answering, forget
from spanwise.llm.client import settings_of


def main(name: str) -> None:
    settings = params.load()
    chunks = schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS)
    rows, documents = chunks.to_pylist(), load_documents(layout.parse(name))
    tokenizer, folder = models.tokenizer(settings), layout.stage("label", name)
    contexts, counts, absence = None, {}, NO_CONTEXTS
    wanted = wanting(rows, documents, settings.labels())
    if wanted and settings.corpus(name).contexts:
        with answering(settings_of(settings), folder) as answers:
            written = write_contexts(
                [Asked(*place) for place in wanted.values()], answers.ask,
                settings.prefixes.context, settings.llm.context_tokens, tokenizer,
            )
        contexts = {place: one.text for place, one in zip(wanted, written, strict=True)}
        counts = {"contexts": {**tally(written), **answers.report()}}
        if few := enough(contexts):
            contexts, absence = None, few
    else:
        forget(folder)
    table, report = label(
        rows, documents, settings.labels(), tokenizer, settings.prefixes.placebo, contexts, absence
    )
    schemas.write(folder / "labels.parquet", schemas.LABELS, table)
    layout.write_report(folder / "report.json", {**report, **counts})


if __name__ == "__main__":
    layout.run(main)

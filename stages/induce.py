"""documents -> induced section trees."""

from spanwise import layout, models, params
from spanwise.documents.records import load_documents
from spanwise.structure.induction import induce


def main(name: str) -> None:
    settings = params.load()
    folder = layout.stage("induce", name)
    report = induce(
        load_documents(layout.parse(name)), settings.corpus(name).inducer, settings,
        models.tokenizer(settings), folder,
    )
    layout.write_report(folder / "report.json", report)


if __name__ == "__main__":
    layout.run(main)

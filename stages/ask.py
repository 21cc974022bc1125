"""documents -> the questions of the study: the corpus's own, a model's, or a question file's."""

from spanwise import layout, params, schemas
from spanwise.writing.asking import ask, parsed


def main(name: str) -> None:
    folder = layout.stage("ask", name)
    asked = ask(parsed(name), params.load(), folder)
    schemas.write(folder / "questions.parquet", schemas.QUESTIONS, asked.questions)
    layout.write_report(folder / "report.json", asked.report)


if __name__ == "__main__":
    layout.run(main)

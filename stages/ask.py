"""documents -> the questions of the study: the corpus's own, a model's, or a question file's."""

from spanwise import layout, params
from spanwise.writing.asking import make


def main(name: str) -> None:
    make(name, params.load())


if __name__ == "__main__":
    layout.run(main)

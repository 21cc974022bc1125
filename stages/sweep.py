"""a corpus's own documents for it -> a sweep as params.yaml has it; no stage of dvc.yaml."""

from spanwise import layout, params
from spanwise.sweep.door import sweep


def main(name: str) -> None:
    print(sweep(params.load(), name).text)


if __name__ == "__main__":
    layout.run(main)

"""finished results -> MLflow; a second call adds nothing."""

import argparse
import gc
import sys
from pathlib import Path

from spanwise import params
from spanwise.errors import SpanwiseError
from spanwise.remotes import bundled
from spanwise.tracking import track


def main(root: Path) -> None:
    settings = params.load(root / "params.yaml")
    summary = track(root, settings)
    print(f"added {summary.added} runs, kept {summary.kept}")
    # The one stage that always runs, so whoever clones is told before a first push.
    if warning := bundled.warning(root, settings.corpora):
        print(warning, file=sys.stderr)


if __name__ == "__main__":
    # A process of seconds that mostly imports: the collector would take a fifth of its time.
    gc.disable()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder")
    try:
        main(parser.parse_args().root)
    except SpanwiseError as error:
        print(f"track: {error}", file=sys.stderr)
        sys.exit(error.exit_code)

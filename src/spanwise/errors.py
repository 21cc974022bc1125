"""Every error a person can meet, as one short tree.

SpanwiseError
├── InputError                 the input is wrong: exit code 2
│   ├── DecodingError          bytes that are not clean UTF-8 text
│   ├── MarkupError            markup that cannot be read, e.g. an unclosed fence
│   ├── CorpusError            manifest, document or corpus layout
│   ├── QuestionError          a question that contradicts its corpus
│   │   └── AnchorError        a quotation that does not name exactly one place
│   ├── ChunkError             a splitter's chunks that are no spans of their document's text
│   │   └── AmbiguousChunk     a chunk that has several places there
│   ├── UnitError              a unit or an anchor that its parent does not bear out
│   ├── RunError               a run file that contradicts its chunks
│   ├── ParamsError            params.yaml
│   └── RegistrationError      registration.json
├── NoEvidence                 a measure is undefined, not zero, without evidence
└── Unavailable                a model, hub or server that cannot be reached: exit code 3

A message says what was found, what was expected, where, and what to do.
"""

from __future__ import annotations


class SpanwiseError(Exception):
    """Base of every error spanwise raises on purpose."""

    exit_code = 1


class InputError(SpanwiseError, ValueError):
    """A user's mistake: what, where, and the mend."""

    exit_code = 2


class DecodingError(InputError):
    """Bytes that are not clean UTF-8 text."""


class MarkupError(InputError):
    """Markup that cannot be read without guessing."""


class CorpusError(InputError):
    """A manifest, document or corpus layout that cannot be used."""


class QuestionError(InputError):
    """A question that contradicts its corpus."""


class AnchorError(QuestionError):
    """A quotation that does not name exactly one place in its document."""


class ChunkError(InputError):
    """What a splitter gave cannot be read as spans of its document's text."""


class AmbiguousChunk(ChunkError):
    """A chunk known as a string that has several places in its text: none is taken."""


class UnitError(InputError):
    """A reference to a slice whose parent is another one now: it is refused, never re-attached."""


class RunError(InputError):
    """A run that contradicts its chunks or questions."""


class ParamsError(InputError):
    """params.yaml does not describe a study."""


class RegistrationError(InputError):
    """registration.json cannot be used."""


class NoEvidence(SpanwiseError, ValueError):
    """A measure was asked of a question without evidence: undefined, not zero."""


class Unavailable(SpanwiseError, RuntimeError):
    """A model, model hub or server cannot be reached."""

    exit_code = 3

"""Bytes to text: strict UTF-8, LF line endings, no byte-order mark, and a count of what was mended.

Every offset of the project counts code points of the text that leaves this room, so nothing here
guesses: bytes that are not UTF-8 are refused with their place, never replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spanwise.errors import CorpusError, DecodingError

_BOM = "\ufeff"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text and what was mended on the way.

    text: code points with LF line endings, without a leading byte-order mark and without NUL.
    bom:  1 if a byte-order mark was stripped, else 0.
    crlf: CR LF pairs that became LF.
    cr:   lone CRs that became LF.
    """

    text: str
    bom: int = 0
    crlf: int = 0
    cr: int = 0

    @property
    def blank(self) -> bool:
        """True if the text is empty or all white space."""
        return not self.text.strip()


def decode(data: bytes, name: str, *, allow_blank: bool = False) -> Decoded:
    """Decode one file.

    data:    its bytes.
    name:    what messages call it, e.g. its path.
    returns: the text; a byte-order mark is stripped, CR LF and lone CR become LF, each counted. A
             U+FEFF that is not the first character is text and stays.
    raises:  DecodingError with file, line and byte offset (from 0) for a byte that is not UTF-8 and
             for a NUL; and for an empty or white-space-only file unless `allow_blank`.
    """
    if data.startswith(_UTF16):
        raise DecodingError(
            f"{name}: bytes {data[0]:02x} {data[1]:02x} at byte offset 0 are the mark of UTF-16, "
            f"expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8 {name}"
        )
    try:
        text = data.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        line = _line(data, error.start)
        raise DecodingError(
            f"{name}: byte {data[error.start]:02x} at byte offset {error.start} (line {line}) is "
            f"not UTF-8 ({error.reason}); convert the file, e.g. iconv -f WINDOWS-1252 -t UTF-8 "
            f"{name}, or replace the byte"
        ) from None
    if (nul := data.find(b"\x00")) >= 0:
        raise DecodingError(
            f"{name}: NUL byte at byte offset {nul} (line {_line(data, nul)}), expected text; "
            "remove it, or convert the file if it is UTF-16 or binary"
        )
    bom = int(text.startswith(_BOM))
    text = text[bom:]
    crlf = text.count("\r\n")
    cr = text.count("\r") - crlf
    if crlf or cr:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    decoded = Decoded(text, bom, crlf, cr)
    if decoded.blank and not allow_blank:
        raise DecodingError(
            f"{name}: {len(data)} bytes and no text, expected at least one character that is not "
            "white space; fill the file or take it out of the corpus"
        )
    return decoded


def read_text(path: Path, name: str | None = None, *, allow_blank: bool = False) -> Decoded:
    """Read and decode one file; `name` (else the path) stands in messages.

    raises: DecodingError as `decode` does; CorpusError if the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(
            f"{name or path}: cannot be read ({error.strerror or error}); expected a readable file"
        ) from None
    return decode(data, name or str(path), allow_blank=allow_blank)


def mended(files: Iterable[Decoded]) -> dict[str, int]:
    """What `decode` mended over many files, by the names that reports print; zeros are left out."""
    bom = crlf = cr = 0
    for file in files:
        bom, crlf, cr = bom + file.bom, crlf + file.crlf, cr + file.cr
    counts = {
        "byte-order marks stripped": bom,
        "CR LF line endings turned into LF": crlf,
        "lone CR line endings turned into LF": cr,
    }
    return {name: count for name, count in counts.items() if count}


def _line(data: bytes, offset: int) -> int:
    """1-based line of a byte offset, whatever ends the lines."""
    before = data[:offset]
    return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")

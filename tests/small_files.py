"""Small real files of the formats that are no plain text, made by the tests themselves."""

from __future__ import annotations

import io
from collections.abc import Sequence

Line = tuple[int, int, int, str]
"""x, y (points from the lower left corner), size, text."""


def pdf(
    pages: Sequence[Sequence[Line]], outline: Sequence[tuple[str, int, int]] = (), title: str = "",
    encrypted: bool = False,
) -> bytes:
    """A PDF in Helvetica.

    outline:   title, page (from 0) and height of each bookmark, all on one level.
    encrypted: says that it is, with a password that nobody knows.
    """
    objects: list[bytes] = [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    tree = 2 + 2 * len(pages)
    kids: list[int] = []
    for lines in pages:
        shown = b"".join(
            b"/F1 %d Tf 1 0 0 1 %d %d Tm (%s) Tj\n" % (size, x, y, _escaped(text))
            for x, y, size, text in lines
        )
        stream = b"BT\n" + shown + b"ET"
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 1 0 R >> >> >>" % (tree, len(objects))
        )
        kids.append(len(objects))
    objects.append(b"<< /Type /Pages /Count %d /Kids [%s] >>"
                   % (len(pages), b" ".join(b"%d 0 R" % kid for kid in kids)))
    root = b"<< /Type /Catalog /Pages %d 0 R" % tree
    if outline:
        first = len(objects) + 2
        last = first + len(outline) - 1
        objects.append(b"<< /Type /Outlines /First %d 0 R /Last %d 0 R /Count %d >>"
                       % (first, last, len(outline)))
        for at, (words, page, height) in enumerate(outline, first):
            beside = b" /Next %d 0 R" % (at + 1) if at < last else b""
            beside += b" /Prev %d 0 R" % (at - 1) if at > first else b""
            objects.append(b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /XYZ 0 %d 0]%s >>"
                           % (_escaped(words), first - 1, kids[page], height, beside))
        root += b" /Outlines %d 0 R" % (first - 1)
    objects += [root + b" >>", b"<< /Title (%s) >>" % _escaped(title)]
    trailer = b"/Root %d 0 R /Info %d 0 R" % (len(objects) - 1, len(objects))
    if encrypted:
        key = b"00" * 32
        objects.append(b"<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <%s> /U <%s> >>"
                       % (key, key))
        trailer += b" /Encrypt %d 0 R /ID [<%s> <%s>]" % (len(objects), key[:32], key[:32])
    return _file(objects, trailer)


def _file(objects: Sequence[bytes], trailer: bytes) -> bytes:
    out, places = b"%PDF-1.5\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, table, len(objects) + 1, trailer, len(out))
    )


def _escaped(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252")


def docx(*blocks: tuple[str, str]) -> bytes:
    """A DOCX of (style, text) paragraphs; a text of rows and bars with style `table` is a table."""
    import docx as library

    document = library.Document()
    for style, text in blocks:
        if style == "table":
            rows = [row.split("|") for row in text.split("\n")]
            table = document.add_table(len(rows), len(rows[0]))
            for r, row in enumerate(rows):
                for c, cell in enumerate(row):
                    table.cell(r, c).text = cell
        else:
            document.add_paragraph(text, style=style)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()

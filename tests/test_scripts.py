"""Which writing systems a text uses."""

from __future__ import annotations

from spanwise.text.scripts import scripts_of


def test_scripts_are_those_that_a_text_is_written_in() -> None:
    assert scripts_of("The area of a circle is π times its radius squared.") == {"LATIN"}
    assert scripts_of("潮 tide") == {"CJK", "LATIN"}
    assert scripts_of("1, 2, 3.") == frozenset()

"""What was fixed beforehand, and the comparison with what ran.

registration.json is written and committed before the strong embedder first runs on a corpus. A
result is confirmatory only while everything that it depends on equals the first entry that names
its corpus; until there is one, and for whatever deviates from it, all output says exploratory.

    fixed       the protocol: all that a confirmatory result depends on
    entries     the file; entries that are only added, and what shows that one was edited
    compared    what ran against the entry that counts: standing and differences
    proof       what git's history proves
    door        `spanwise register`
"""

from spanwise.registration.compared import Standing, standing
from spanwise.registration.door import digests_of, documents_of, register_now
from spanwise.registration.entries import FILE, load, register
from spanwise.registration.fixed import EXCLUSIONS, protocol

__all__ = [
    "EXCLUSIONS",
    "FILE",
    "Standing",
    "digests_of",
    "documents_of",
    "load",
    "protocol",
    "register",
    "register_now",
    "standing",
]

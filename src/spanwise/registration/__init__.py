"""What was fixed beforehand, and the comparison with what ran.

registration.json is meant to be written and committed before the strong embedder first runs on a
corpus. A result is confirmatory only while everything that it depends on equals the first entry
that names its corpus or holds its digests; until there is one, and for whatever deviates from it,
all output says exploratory. That the entry came first is for git to prove.

    fixed       the protocol: all that a confirmatory result depends on
    entries     the file; entries that are only added, and what shows that one was edited
    named       which entry counts for a corpus, whatever it is called now
    weights     digests of the strong embedder's weights
    compared    what ran against the entry that counts: standing and differences
    proof       what git's history proves
    door        `spanwise register`
"""

from spanwise.registration.compared import Standing, standing
from spanwise.registration.door import digests_of, documents_of, register_now
from spanwise.registration.entries import FILE, load, register
from spanwise.registration.fixed import EXCLUSIONS, protocol
from spanwise.registration.named import Unseen, counting, unseen

__all__ = [
    "EXCLUSIONS",
    "FILE",
    "Standing",
    "Unseen",
    "counting",
    "digests_of",
    "documents_of",
    "load",
    "protocol",
    "register",
    "register_now",
    "standing",
    "unseen",
]

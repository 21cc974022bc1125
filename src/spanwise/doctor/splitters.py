"""Whether the packages that `external` of params.yaml names are here, in the versions it names."""

from __future__ import annotations

import importlib.util

from spanwise.chunking.external import how_to_install, installed
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding
from spanwise.params import Params


def look(params: Params) -> list[Finding]:
    """A line for each entry. Nothing is imported."""
    found = []
    for name, its in params.external.items():
        place, here = f"external {name}", installed(its.package)
        if here == its.version:
            found.append(Finding(place, OK, f"{its.package} {here}"))
        elif here is None and importlib.util.find_spec(its.package.partition(".")[0]):
            found.append(Finding(place, NOTE, f"{its.package} comes from no distribution: its "
                                 f"__version__ is held against {its.version} when it cuts"))
        else:
            found.append(Finding(
                place, PROBLEM,
                f"{its.package} {its.version} is named, "
                + (f"{here} is installed" if here else "no package of that name is installed")
                + ": stage `chunk` would stop",
                how_to_install(its) + (f', or say `version: "{here}"`' if here else ""),
            ))
    return found

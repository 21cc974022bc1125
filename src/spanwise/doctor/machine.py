"""Cores, memory and disk, and how fast one core multiplies just now."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding, size
from spanwise.embedding import workers
from spanwise.errors import ParamsError

_SECONDS = 0.15
_ROWS = 256
SHARE = 0.7
"""Of the rate of bare products, what an encoder reaches with one text a pass (measured with MiniLM
and mpnet, one thread, on an x86 server: .60 to .83)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """cores: that this process may use; processes: for CPU work; memory, disk: free bytes; memory
    is None where the system does not say; start: seconds that `starting` took."""

    cores: int
    processes: int
    memory: int | None
    disk: int
    start: float = 0.5


def look(root: Path = Path()) -> tuple[Machine, list[Finding]]:
    """What this machine has to give, and what is wrong with its settings."""
    allowed = getattr(os, "sched_getaffinity", None)
    cores = len(allowed(0)) if allowed else os.cpu_count() or 1
    memory, disk = free_memory(), shutil.disk_usage(root).free
    found: list[Finding] = []
    try:
        processes = workers()
    except ParamsError as error:
        processes = cores
        found.append(Finding("threads", PROBLEM, str(error), "unset SPANWISE_WORKERS"))
    else:
        said = f"{cores} cores, {processes} processes of one thread each for encoders"
        busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        if processes > cores:
            found.append(Finding(
                "threads", NOTE, f"{said}: more processes than cores only take memory",
                f"SPANWISE_WORKERS={cores}, or unset it",
            ))
        elif busy > 1.5 * cores:
            found.append(Finding(
                "threads", NOTE, f"{said}; {busy:.0f} tasks want them just now, so everything "
                "takes longer than it must",
            ))
        else:
            found.append(Finding("threads", OK, said))
    return Machine(cores, processes, memory, disk, starting()), found


def starting() -> float:
    """Seconds in which Python starts with what every stage imports, as things are now."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import spanwise.params, spanwise.schemas"], check=False,
                   capture_output=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begun


def free_memory() -> int | None:
    """Bytes that a process can have without swapping, the container's limit included."""
    try:
        said = Path("/proc/meminfo").read_text(encoding="ascii")
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", said, re.M)
        free = int(found[1]) * 1024 if found else None
    except OSError:
        return None
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit
        return free
    return limit - used if free is None else min(free, limit - used)


def rate(width: int) -> float:
    """Floating-point operations a second of an encoder this wide on one core, as it is now.

    It times the product that encoders spend most time on, (256, width) x (width, 4 width) in single
    precision with one thread, for 0.15 s, and takes the mean: what else the machine does counts.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    rows = rng.random((_ROWS, width), dtype=np.float32)
    weights = rng.random((width, 4 * width), dtype=np.float32)
    with import_module("threadpoolctl").threadpool_limits(1):
        rows @ weights
        begun = time.perf_counter()
        done = 0
        while (spent := time.perf_counter() - begun) < _SECONDS or not done:
            rows @ weights
            done += 1
    return SHARE * done * 2 * _ROWS * width * 4 * width / max(spent, 1e-9)


def fits(machine: Machine, memory: float, disk: float, what: str) -> list[Finding]:
    """Whether the estimates fit.

    memory: bytes of the hungriest stage, whose name is `what`; disk: bytes of all.
    """
    found = []
    if machine.memory is None:
        found.append(Finding("memory", NOTE, f"about {size(memory)} wanted by {what}; what is free "
                             "is not known on this system"))
    elif memory > machine.memory:
        found.append(Finding(
            "memory", PROBLEM, f"about {size(memory)} wanted by {what}, {size(machine.memory)} "
            "are free", "SPANWISE_WORKERS=1 takes one process instead of "
            f"{machine.processes}; close other programs, or name a smaller model",
        ))
    else:
        wanted = f"about {size(memory)} wanted by {what}" if memory else "no large amount is wanted"
        found.append(Finding("memory", OK, f"{size(machine.memory)} free, {wanted}"))
    if disk > machine.disk:
        found.append(Finding(
            "disk", PROBLEM, f"about {size(disk)} wanted, {size(machine.disk)} are free",
            "make room; `dvc gc --workspace` drops from DVC's cache what the workspace does not "
            "need (`dvc push` first)",
        ))
    else:
        wanted = f"about {size(disk)} wanted" if disk else "no large amount is wanted"
        found.append(Finding("disk", OK, f"{size(machine.disk)} free, {wanted}"))
    return found

"""Facts about this machine, such as the memory that it, a container or the shell grants."""

from __future__ import annotations

import os
from contextlib import suppress

MEMORY_SHARE = 0.5
"""Share of the machine's memory that one file may unpack to: an estimator needs the rest."""

UNKNOWN_MEMORY = 8 * 2**30
"""Memory to assume, in bytes, where the system does not tell."""


def total_memory() -> int:
    """Return the bytes of memory that this machine has; 0 where the system does not tell."""
    try:
        return max(0, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 0


def available_memory() -> int:
    """Return the bytes of memory that this process may take; 0 where the system does not tell.

    That is the memory of the machine, or less: in a container (a control group of Linux, of version
    1 or 2), or where the shell limits the addresses of a process (``ulimit -v``).
    """
    limits = (total_memory(), _group_limit(), address_limit())
    return min((limit for limit in limits if limit), default=0)


def address_limit() -> int:
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return soft if soft != resource.RLIM_INFINITY else 0
    return 0


def _group_limit(groups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> int:
    """Return the least limit on the memory of the control groups of this process, or 0."""
    found: list[int] = []
    with suppress(OSError), open(groups, encoding="utf-8") as stream:
        for line in stream:
            _, controllers, place = line.strip().split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            base = os.path.join(root, "memory") if controllers else root
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            parts = [part for part in place.split("/") if part not in ("", "..")]
            for depth in range(len(parts) + 1):  # a group keeps to the limits of those above it
                with (
                    suppress(OSError, ValueError),
                    open(os.path.join(base, *parts[:depth], name), encoding="ascii") as told,
                ):
                    found.append(int(told.read()))
    return min(found, default=0)


def default_limit() -> int:
    """Return the most bytes that a file may unpack to unless the caller says otherwise."""
    return int(MEMORY_SHARE * (available_memory() or UNKNOWN_MEMORY))


def stated(path: str | os.PathLike[str], field: str) -> str:
    """Return what a text such as /proc/cpuinfo states of a field; empty where it does not."""
    with suppress(OSError), open(path, encoding="utf-8") as stream:
        for line in stream:
            if line.startswith(field):
                return line.partition(":")[2].strip()
    return ""

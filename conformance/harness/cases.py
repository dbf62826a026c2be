"""Which cases there are, and which of them a run takes."""

import re

# What each section is about, and how many cases it has: a suite that holds fewer must not pass for the whole.
# (Sections 8 and 11 do not exist.)
SECTIONS = {
    "1": ("framing", 16),
    "2": ("pings and pongs", 11),
    "3": ("reserved bits", 7),
    "4": ("opcodes", 10),
    "5": ("fragmentation", 20),
    "6": ("UTF-8", 145),
    "7": ("closing handshake", 37),
    "9": ("limits and performance", 54),
    "10": ("automatic fragmentation", 1),
    "12": ("compression", 90),
    "13": ("compression as agreed", 126),
}
COUNT = sum(count for _, count in SECTIONS.values())

# The sections about compression, which take most of the time.
COMPRESSION = {"12", "13"}

# A valid message precedes an invalid frame in these, and the suite's verdict, OK or NON-STRICT, hangs on whether it
# reads the echo before it notices the end of the connection.
RACING = {"3.2", "3.3", "3.4", "4.1.3", "4.1.4", "4.1.5", "4.2.3", "4.2.4", "4.2.5", "5.15"}


def section(case):
    """Returns the section that a case belongs to."""
    return case.split(".")[0]


def order(case):
    """Sorts 2.10 after 2.9."""
    return [int(number) for number in case.split(".")]


def known(listed):
    """Returns the ids in `listed`, the suite's own list, that belong to our sections.

    Raises ValueError unless each section has exactly the number of cases that it should have.
    """
    ids = sorted({case for case in listed if section(case) in SECTIONS}, key=order)
    for name, (_, expected) in SECTIONS.items():
        found = sum(section(case) == name for case in ids)
        if found != expected:
            raise ValueError(f"section {name} of the suite has {found} cases, not {expected}")
    return ids


def select(ids, wanted):
    """Returns those of `ids` that `wanted` names: ids or their beginnings, separated by commas, such as `2.10,9.1,5`.

    Raises ValueError if a part of `wanted` names no case.
    """
    selected = set()
    for part in wanted.split(","):
        prefix = part.strip().removesuffix(".*")
        found = {case for case in ids if re.match(rf"{re.escape(prefix)}(\.|$)", case)}
        if not found:
            raise ValueError(f"no case is called {part!r}")
        selected |= found
    return sorted(selected, key=order)

"""The cases of the suite, and the selection for a run."""

import re

# The subject of each section and its number of cases: a smaller suite must not pass.
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

# In these cases a valid message precedes an invalid frame, and the suite's verdict, OK or
# NON-STRICT, depends on whether it reads the echo before it notices the end of the connection.
RACING = {"3.2", "3.3", "3.4", "4.1.3", "4.1.4", "4.1.5", "4.2.3", "4.2.4", "4.2.5", "5.15"}


def section(case):
    """Returns the section that a case belongs to."""
    return case.split(".")[0]


def order(case):
    """Returns a sort key that puts 2.10 after 2.9."""
    return [int(number) for number in case.split(".")]


def known(listed):
    """Returns the ids in `listed`, the suite's own list, that belong to our sections.

    Raises ValueError unless each section has exactly the expected number of cases.
    """
    ids = sorted({case for case in listed if section(case) in SECTIONS}, key=order)
    for name, (_, expected) in SECTIONS.items():
        found = sum(section(case) == name for case in ids)
        if found != expected:
            raise ValueError(f"section {name} of the suite has {found} cases, not {expected}")
    return ids


def select(ids, wanted):
    """Returns the `ids` that `wanted` selects: ids or prefixes separated by commas, such as
    `2.10,9.1,5`.

    Raises ValueError if a part of `wanted` does not match a case.
    """
    selected = set()
    for part in wanted.split(","):
        prefix = part.strip().removesuffix(".*")
        found = {case for case in ids if re.match(rf"{re.escape(prefix)}(\.|$)", case)}
        if not found:
            raise ValueError(f"no case matches {part!r}")
        selected |= found
    return sorted(selected, key=order)

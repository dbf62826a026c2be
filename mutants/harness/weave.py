"""Inserts text into a source at many places at once, and tells afterwards what came from where.

Nothing of the source is ever removed or moved: whatever is wrapped may hold others that are wrapped, to any depth.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    text: str
    # The mutants that this text is there for; if the compiler refuses it, they are the ones that don't compile.
    mutants: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wrap:
    """Text before and after a range of bytes; an empty range is a place to insert at."""
    start: int
    end: int
    before: tuple[Part, ...]
    after: str = ""

    @property
    def mutants(self) -> tuple[int, ...]:
        return tuple(mutant for part in self.before for mutant in part.mutants)


@dataclass(frozen=True)
class Region:
    """Bytes of the woven text, and the mutants that they are there for."""
    start: int
    end: int
    mutants: tuple[int, ...]
    # Whether it is a wrap with all that it holds, and not only the text for one mutant.
    is_whole: bool

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end


def weave(source: bytes, wraps: list[Wrap]) -> tuple[bytes, list[Region]]:
    """Returns the source with all that is to be inserted. Ranges may lie within each other, but not overlap in part; of two
    that are equal, the first is the outer one."""
    woven, regions, at = bytearray(), [], 0
    opened = {}
    for offset, is_opening, index in _events(wraps):
        woven += source[at:offset]
        at = offset
        wrap = wraps[index]
        if is_opening:
            opened[index] = len(woven)
            for part in wrap.before:
                start = len(woven)
                woven += part.text.encode()
                if part.mutants:
                    regions.append(Region(start, len(woven), part.mutants, False))
        else:
            woven += wrap.after.encode()
            if wrap.mutants:
                regions.append(Region(opened[index], len(woven), wrap.mutants, True))
    return bytes(woven + source[at:]), regions


def _events(wraps: list[Wrap]) -> list[tuple[int, bool, int]]:
    """Returns where the wraps begin and end, in the order in which their texts have to stand."""
    events = []
    for index, wrap in enumerate(wraps):
        length = wrap.end - wrap.start
        if length == 0:
            # Between what ends here and what begins here.
            events += [((wrap.start, 1, index, 0), True, index), ((wrap.start, 1, index, 1), False, index)]
        else:
            events.append(((wrap.start, 2, -length, index), True, index))
            events.append(((wrap.end, 0, length, -index), False, index))
    events.sort(key=lambda event: event[0])
    return [(key[0], is_opening, index) for key, is_opening, index in events]


def blamed(regions: list[Region], spans: list[tuple[int, int]]) -> set[int]:
    """Returns the mutants that an error of the compiler is about, by the ranges that it points at, the most telling first.

    That is the smallest text for one mutant that holds one of them; else the smallest wrap around one; else the first
    within one.
    """
    for is_whole in (False, True):
        for start, end in spans:
            around = [region for region in regions if region.is_whole == is_whole and region.holds(start, end)]
            if around:
                return set(min(around, key=lambda region: region.end - region.start).mutants)
    for start, end in spans:
        within = [region for region in regions if start <= region.start and region.end <= end]
        if within:
            return set(min(within, key=lambda region: region.start).mutants)
    return set()

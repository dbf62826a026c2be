"""Inserts text into a source at many positions at once, and maps the result back to the insertions.

Nothing of the source is removed or moved: wrapped ranges may contain other wrapped ranges to any
depth.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    text: str
    # The mutants that this text belongs to; if the compiler refuses it, these mutants do not
    # compile.
    mutants: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wrap:
    """Text before and after a range of bytes; an empty range is a position to insert at."""
    start: int
    end: int
    before: tuple[Part, ...]
    after: str = ""

    @property
    def mutants(self) -> tuple[int, ...]:
        return tuple(mutant for part in self.before for mutant in part.mutants)


@dataclass(frozen=True)
class Region:
    """Bytes of the woven text, and the mutants that they belong to."""
    start: int
    end: int
    mutants: tuple[int, ...]
    # True if it is a whole wrap with its content, and not only the text for one mutant.
    is_whole: bool

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end


def weave(source: bytes, wraps: list[Wrap]) -> tuple[bytes, list[Region]]:
    """Returns the source with all insertions. Ranges may be nested, but must not overlap partially.
    Of two equal ranges, the first is the outer one."""
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
    """Returns the beginnings and ends of the wraps, in the order of their texts."""
    events = []
    for index, wrap in enumerate(wraps):
        length = wrap.end - wrap.start
        if length == 0:
            # Between ranges that end here and ranges that begin here.
            events += [((wrap.start, 1, index, 0), True, index), ((wrap.start, 1, index, 1), False, index)]
        else:
            events.append(((wrap.start, 2, -length, index), True, index))
            events.append(((wrap.end, 0, length, -index), False, index))
    events.sort(key=lambda event: event[0])
    return [(key[0], is_opening, index) for key, is_opening, index in events]


def blamed(regions: list[Region], spans: list[tuple[int, int]]) -> set[int]:
    """Returns the mutants that caused a compiler error, by its ranges, most specific first.

    That is the smallest text for one mutant that contains one of the ranges; else the smallest wrap
    around one; else the first within one.
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

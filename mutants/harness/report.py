"""The figures, and the mutants that no test detected."""

from collections import Counter
from dataclasses import dataclass

from mutant import Mutant
from trying import NO_TEST, NOT_NOTICED


@dataclass(frozen=True)
class Row:
    package: str
    left_out: int
    tried: int
    noticed: int
    # How many of the detected ones made a test hang.
    timeouts: int
    untried: int

    @property
    def percent(self) -> float:
        return 100 * self.noticed / self.tried if self.tried else 100.0


def rows(mutants: list[Mutant], left_out: dict[int, str], outcomes: dict[int, str]) -> list[Row]:
    result = []
    for package in sorted({mutant.package for mutant in mutants}):
        numbers = [mutant.number for mutant in mutants if mutant.package == package]
        tried = [outcomes[number] for number in numbers if number in outcomes]
        not_built_in = sum(number in left_out for number in numbers)
        unnoticed = sum(outcome in (NO_TEST, NOT_NOTICED) for outcome in tried)
        result.append(Row(
            package, not_built_in, len(tried), len(tried) - unnoticed, tried.count("timeout"),
            len(numbers) - len(tried) - not_built_in,
        ))
    return result


def table(rows: list[Row]) -> list[str]:
    lines = [f"{'':<16} {'tried':>6} {'noticed':>8} {'':>7} {'timeouts':>9} {'left out':>9} {'to be tried':>12}"]
    for row in rows:
        percent = f"{row.percent:.1f} %" if row.tried else ""
        figures = f"{row.tried:>6,} {row.noticed:>8,} {percent:>7} {row.timeouts:>9,} {row.left_out:>9,} {row.untried:>12,}"
        lines.append(f"{row.package:<16} {figures}")
    return lines


def reasons(mutants: list[Mutant], left_out: dict[int, str]) -> list[str]:
    """Returns the number of mutants that are left out, by reason."""
    counts = Counter(left_out[mutant.number] for mutant in mutants if mutant.number in left_out)
    return [f"{count:>6,} left out: {reason}" for reason, count in counts.most_common()]


def unnoticed(mutants: list[Mutant], outcomes: dict[int, str]) -> list[str]:
    """Returns file, line and change of each mutant that no test detected."""
    lines = []
    for mutant in mutants:
        outcome = outcomes.get(mutant.number)
        if outcome in (NO_TEST, NOT_NOTICED):
            lines.append(mutant.name + (f" ({NO_TEST})" if outcome == NO_TEST else ""))
    return lines

"""Judges the results of a run and prints them."""

import json
from dataclasses import dataclass

from cases import SECTIONS, section

GOOD = ("OK", "INFORMATIONAL")
NOT_RUN = "NOT RUN"


@dataclass
class Verdict:
    """The result of one case."""

    case: str
    behavior: str
    behavior_close: str
    seconds: float
    explanation: str
    attempts: int = 1

    @property
    def passed(self):
        """True if both the messages and the closing handshake passed, and not merely NON-STRICT."""
        return self.behavior in GOOD and self.behavior_close in GOOD

    @property
    def skipped(self):
        """True if the suite found that the peer does not support the extension in question."""
        return self.behavior == "UNIMPLEMENTED"


def missing(case):
    """Returns the verdict on a case without a result: the peer or the suite ended before it."""
    return Verdict(case, NOT_RUN, NOT_RUN, 0.0, "")


def read(path, attempt=1):
    """Returns the verdicts in a file of results, by case; `attempt` is the number of attempts so
    far.

    A truncated last line is not a result.
    """
    verdicts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                break
            result = json.loads(line)
            # The suite counts from 1970 if there was no opening handshake.
            milliseconds = result["duration"] if result["duration"] < 1e9 else 0
            verdicts[result["id"]] = Verdict(
                case=result["id"],
                behavior=result["behavior"],
                behavior_close=result["behaviorClose"],
                seconds=milliseconds / 1000,
                explanation=_explanation(result),
                attempts=attempt,
            )
    return verdicts


def _explanation(result):
    parts = []
    if result["behavior"] not in GOOD:
        # The events themselves tell more than "Actual events differ from any expected" and similar
        # texts.
        if not result["result"].startswith("Actual events"):
            parts.append(result["result"])
        parts.append(f"received {_shortened(result['received'])}")
    if result["behaviorClose"] not in GOOD:
        parts.append(result["resultClose"])
    if result["remoteCloseCode"] is not None:
        parts.append(f"close code {result['remoteCloseCode']}")
    return "; ".join(parts)


def _shortened(received):
    text = json.dumps(received)
    return text if len(text) <= 120 else f"{text[:120]}…"


def table(verdicts):
    """Returns the lines of a table with one row per section and the total."""
    rows = [["section", "cases", "OK", "informational", "non-strict", "bad close", "failed", "time"]]
    groups = {name: [v for v in verdicts if section(v.case) == name] for name in SECTIONS}
    for name, members in [*groups.items(), ("total", verdicts)]:
        if members:
            title = f"{name:>2} {SECTIONS[name][0]}" if name in SECTIONS else name
            rows.append([title, *_counts(members)])
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join([str(row[0]).ljust(widths[0]), *(str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in rows
    ]


def _counts(members):
    good = [v for v in members if v.behavior in GOOD]
    non_strict = [v for v in members if v.behavior == "NON-STRICT"]
    return [
        len(members),
        sum(v.passed and v.behavior == "OK" for v in good),
        sum(v.passed and v.behavior == "INFORMATIONAL" for v in good),
        len(non_strict),
        sum(not v.passed for v in good),
        len(members) - len(good) - len(non_strict),
        f"{sum(v.seconds for v in members):.1f} s",
    ]


def repeats(verdicts):
    """Returns a line with the cases that were run more than once, if there are any."""
    names = [f"{v.case} ({v.attempts})" for v in verdicts if v.attempts > 1]
    return [f"run more than once: {', '.join(names)}"] if names else []


def complaints(verdicts):
    """Returns a line for each case that did not pass, and one for all cases that were not run."""
    lines = [
        f"{v.case}: {v.behavior}, close {v.behavior_close}: {v.explanation}"
        for v in verdicts
        if not v.passed and v.behavior != NOT_RUN
    ]
    absent = [v.case for v in verdicts if v.behavior == NOT_RUN]
    return [*lines, f"{len(absent)} not run: {', '.join(absent)}"] if absent else lines


def tally(verdicts):
    """Returns the numbers of passed, failed and skipped cases."""
    passed = sum(v.passed for v in verdicts)
    skipped = sum(v.skipped for v in verdicts)
    return passed, len(verdicts) - passed - skipped, skipped

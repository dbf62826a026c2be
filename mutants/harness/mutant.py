"""The mutants that cargo-mutants finds, with our numbers."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    number: int
    package: str
    file: str
    line: int
    # In characters, from 1.
    column: int
    # The kind of change, as named by cargo-mutants.
    genre: str
    replacement: str
    return_type: str
    # File, line, column and change, for people.
    name: str


def parse(listing: str) -> list[Mutant]:
    """Parses the output of `cargo mutants --list --json`."""
    mutants = []
    for number, entry in enumerate(json.loads(listing)):
        start = entry["span"]["start"]
        mutants.append(Mutant(
            number, entry["package"], entry["file"], start["line"], start["column"], entry["genre"], entry["replacement"],
            (entry["function"] or {}).get("return_type", ""), entry["name"],
        ))
    return mutants


def listing(root: Path, packages: list[str]) -> str:
    """Runs cargo-mutants, which must be in the PATH. Order and numbers are always the same."""
    command = ["cargo-mutants", "mutants", "--list", "--json", "--all-features"]
    for package in packages:
        command += ["--package", package]
    return subprocess.run(command, cwd=root, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


class Offsets:
    """Converts lines and columns of a text, both from 1 and in characters, to byte offsets."""

    def __init__(self, text: str):
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line.encode()) + 1)

    def at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1][:column - 1].encode())

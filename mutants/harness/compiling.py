"""Compiles the copy, leaving out mutants that the compiler refuses, in several turns."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import instrument
import workspace
from mutant import Mutant
from weave import Region, blamed, weave

# The compiler reports some errors only after others are fixed.
TURNS_MAX = 40
NON_CONST = re.compile(r"cannot call non-const .*`(?:[^`]*::)?(\w+)`")


@dataclass
class Refused:
    """The mutants and functions that the compiler has refused so far."""
    mutants: set[int] = field(default_factory=set)
    # Functions that the compiler evaluates.
    kept_const: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.mutants) + len(self.kept_const)


@dataclass(frozen=True)
class Program:
    """An executable with tests, and where to run it."""
    path: str
    folder: str


@dataclass(frozen=True)
class Built:
    programs: list[Program]
    placed: list[int]
    # The reason why each missing mutant is not in the programs.
    left_out: dict[int, str]


class CompileError(Exception):
    """The copy does not compile, but not because of a mutant."""


def compile_all(packages: list[str], mutants: list[Mutant], refused: Refused, tell) -> Built:
    """Returns the programs. Adds to `refused`, and calls `tell` with the progress."""
    files = sorted({mutant.file for mutant in mutants})
    nodes = instrument.nodes(workspace.build_nodes_program(), workspace.ROOT, files)
    for turn in range(1, TURNS_MAX + 1):
        regions, left_out = _write(packages, mutants, nodes, refused)
        tell(f"compiling {len(mutants) - len(left_out):,} mutants, turn {turn}")
        messages, complaint = _cargo(packages)
        errors = [message["message"] for message in messages if is_error(message)]
        if not errors:
            programs = [program for program in map(test_program, messages) if program]
            if not programs:
                raise CompileError(complaint)
            placed = [mutant.number for mutant in mutants if mutant.number not in left_out]
            return Built(programs, placed, left_out)
        before = len(refused)
        for error in errors:
            blame(error, regions, refused)
        if len(refused) == before:
            raise CompileError("\n".join(error["rendered"] for error in errors[:3]))
    raise CompileError(f"there are still errors after {TURNS_MAX} turns")


def _write(packages, mutants, nodes, refused) -> tuple[dict[str, list[Region]], dict[int, str]]:
    woven, regions = {}, {}
    left_out = {mutant.number: instrument.DOES_NOT_COMPILE for mutant in mutants if mutant.number in refused.mutants}
    for file in nodes:
        here = [mutant for mutant in mutants if mutant.file == file and mutant.number not in left_out]
        source = (workspace.ROOT / file).read_bytes()
        wraps, not_built_in = instrument.wraps(source, here, nodes[file], refused.kept_const)
        left_out |= not_built_in
        woven[file], regions[file] = weave(source, wraps)
    workspace.write(packages, woven)
    return regions, left_out


def _cargo(packages: list[str]) -> tuple[list[dict], str]:
    """Returns the messages of cargo, and its output for people."""
    command = ["cargo", "build", "--release", "--tests", "--all-features", "--keep-going", "--message-format=json"]
    for package in packages:
        command += ["--package", package]
    env = dict(
        os.environ,
        # Most mutants leave something unused.
        RUSTFLAGS="--cap-lints=allow",
        CARGO_INCREMENTAL="0",
        CARGO_PROFILE_RELEASE_DEBUG="0",
        CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS="true",
        CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS="true",
        CARGO_TARGET_DIR=str(workspace.CACHE / "target"),
    )
    done = subprocess.run(command, cwd=workspace.COPY, env=env, capture_output=True, encoding="utf-8")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stderr


def is_error(message: dict) -> bool:
    return message["reason"] == "compiler-message" and message["message"]["level"] == "error"


def test_program(message: dict) -> Program | None:
    if message["reason"] != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
        return None
    return Program(message["executable"], str(Path(message["manifest_path"]).parent))


def blame(error: dict, regions: dict[str, list[Region]], refused: Refused) -> None:
    """Adds the cause of a compiler error, given as JSON, to the refused mutants and functions."""
    code = (error["code"] or {}).get("code")
    non_const = NON_CONST.search(error["message"])
    if code == "E0015" and non_const and non_const[1] != "is_on":
        refused.kept_const.add(non_const[1])
        return
    spans = {}
    for span in sorted(error["spans"], key=lambda span: not span["is_primary"]):
        spans.setdefault(span["file_name"], []).append((span["byte_start"], span["byte_end"]))
    for file, ranges in spans.items():
        guilty = blamed(regions.get(file, []), ranges)
        if guilty:
            refused.mutants |= guilty
            return

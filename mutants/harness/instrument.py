"""Writes all mutants of a file into it, each behind a call of the crate `mutant-switch`.

    a + b        becomes  (if is_on(7) { a - b } else if is_on(8) { a * b } else { a + b })
    fn f() {     becomes  fn f() { if is_on(9) { return Default::default(); }
    p if g =>    becomes  p if is_on(10) || (g) =>      for a guard that becomes true
    p =>         becomes  p if !is_on(11) =>            for an arm that is removed

An operator is replaced as if its expression were in parentheses. A `const fn` loses the keyword
`const` unless the compiler has to evaluate it.
"""

import json
import subprocess
from collections.abc import Container
from pathlib import Path

from mutant import Mutant, Offsets
from weave import Part, Wrap

# Reasons why a mutant is not built in.
DOES_NOT_COMPILE = "it does not compile"
COMPILER = "the compiler evaluates it"
LET = "the condition binds variables"
IMPL = "the result is an `impl Trait`"
GENRE = "there is no expression to replace"
UNKNOWN = "its position is unknown"

OPERATORS = ("BinaryOperator", "UnaryOperator")
KIND_OF = {"FnValue": "body", "MatchArm": "arm", "MatchArmGuard": "guard", **dict.fromkeys(OPERATORS, "operator")}


def nodes(program: Path, root: Path, files: list[str]) -> dict[str, list[dict]]:
    """Returns the nodes in the files that can be changed, found by `mutant-nodes`."""
    command = [str(program), *files]
    lines = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.splitlines()
    return {entry["file"]: entry["nodes"] for entry in map(json.loads, lines)}


def wraps(source: bytes, mutants: list[Mutant], nodes: list[dict], kept_const: Container[str]):
    """Returns the insertions that add these mutants to a file, and the reason for each that cannot
    be added.

    `kept_const` has the names of functions that have to stay `const`.
    """
    offsets = Offsets(source.decode())
    by_place = {}
    for node in nodes:
        # Functions may begin at the same position; the outer one comes first.
        by_place.setdefault((node["kind"], node["at"]), node)
    found, constants, left_out = {}, set(), {}
    for mutant in mutants:
        place = (KIND_OF.get(mutant.genre), offsets.at(mutant.line, mutant.column))
        node = by_place.get(place)
        reason = _obstacle(mutant, node, kept_const)
        if reason:
            left_out[mutant.number] = reason
            continue
        found.setdefault(place, []).append(mutant)
        if node["const_fn"]:
            constants.add(node["const_fn"]["at"])
    result = [Wrap(at, at + len("const"), (Part("/* "),), " */") for at in sorted(constants)]
    # A guard precedes an operator: if both are the same expression, the guard is the outer one.
    for place, here in sorted(found.items()):
        result += _wraps_of(source, by_place[place], here)
    return result, left_out


def _obstacle(mutant: Mutant, node: dict | None, kept_const: Container[str]) -> str | None:
    if mutant.genre not in KIND_OF:
        return GENRE
    if node is None:
        return UNKNOWN
    if mutant.genre == "FnValue" and "impl " in mutant.return_type:
        return IMPL
    if node["fixed"] == "constant" or node["const_fn"] and node["const_fn"]["name"] in kept_const:
        return COMPILER
    return {"last": DOES_NOT_COMPILE, "let": LET}.get(node["fixed"])


def _wraps_of(source: bytes, node: dict, mutants: list[Mutant]) -> list[Wrap]:
    range_, place = node["range"], node["place"]
    if node["kind"] == "operator":
        return [_operator(source, range_, place, mutants)]
    result = []
    for mutant in mutants:
        is_on, numbers = _is_on(mutant), (mutant.number,)
        if node["kind"] == "body":
            returning = Part(f" if {is_on} {{ return {mutant.replacement}; }}", numbers)
            result.append(Wrap(place["start"], place["end"], (returning,)))
        elif node["kind"] == "arm":
            # A missing arm is an error of the whole `match`.
            result.append(Wrap(range_["start"], range_["end"], (Part("", numbers),)))
            result.append(Wrap(place["start"], place["end"], (Part(f"if !{is_on} ", numbers),)))
        else:
            condition = f"{is_on} || (" if mutant.replacement == "true" else f"!{is_on} && ("
            result.append(Wrap(range_["start"], range_["end"], (Part(condition, numbers),), ")"))
    return result


def _operator(source: bytes, whole: dict, operator: dict, mutants: list[Mutant]) -> Wrap:
    left = source[whole["start"]:operator["start"]].decode()
    right = source[operator["end"]:whole["end"]].decode()
    parts = [Part("(")]
    for mutant in mutants:
        parts.append(Part(f"if {_is_on(mutant)} {{ {left}{mutant.replacement}{right} }}", (mutant.number,)))
        parts.append(Part(" else "))
    parts.append(Part("{ "))
    return Wrap(whole["start"], whole["end"], tuple(parts), " })")


def _is_on(mutant: Mutant) -> str:
    return f"::mutant_switch::is_on({mutant.number})"

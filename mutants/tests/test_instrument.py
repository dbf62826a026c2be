"""Tests of how mutants are written into a file."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "harness"))

import instrument  # noqa: E402
import mutant  # noqa: E402
import weave  # noqa: E402


def change(number, genre, line, column, replacement, return_type=""):
    return mutant.Mutant(number, "a-crate", "a.rs", line, column, genre, replacement, return_type, "")


def span(source, text):
    start = source.index(text)
    return {"start": start, "end": start + len(text)}


def node(kind, at, whole, place, fixed=None, const_fn=None):
    return {"kind": kind, "at": at, "range": whole, "place": place, "fixed": fixed, "const_fn": const_fn}


def empty(at):
    return {"start": at, "end": at}


class Instrumenting(unittest.TestCase):
    def woven(self, source, mutants, nodes, kept_const=()):
        wraps, left_out = instrument.wraps(source.encode(), mutants, nodes, kept_const)
        text = weave.weave(source.encode(), wraps)[0].decode()
        return text.replace("::mutant_switch::is_on", "on"), left_out

    def operator(self, source, whole, operator, **more):
        at = span(source, operator)
        return node("operator", at["start"], span(source, whole), at, **more)

    def test_an_operator_is_chosen_by_the_switch(self):
        source = "let c = a + b;"
        mutants = [change(4, "BinaryOperator", 1, 11, "-"), change(5, "BinaryOperator", 1, 11, "*")]
        text, left_out = self.woven(source, mutants, [self.operator(source, "a + b", "+")])
        self.assertEqual(text, "let c = (if on(4) { a - b } else if on(5) { a * b } else { a + b });")
        self.assertEqual(left_out, {})

    def test_an_operand_is_changed_only_if_its_own_operator_is_the_original(self):
        source = "x(!a && b)"
        mutants = [change(1, "BinaryOperator", 1, 6, "||"), change(2, "UnaryOperator", 1, 3, "")]
        nodes = [self.operator(source, "!a && b", "&&"), self.operator(source, "!a", "!")]
        text, _ = self.woven(source, mutants, nodes)
        self.assertEqual(text, "x((if on(1) { !a || b } else { (if on(2) { a } else { !a }) && b }))")

    def test_a_body_returns_another_value(self):
        source = "fn f() -> bool { go() }"
        body = node("body", span(source, "go")["start"], span(source, "{ go() }"), empty(16))
        mutants = [change(1, "FnValue", 1, 18, "true", "-> bool"), change(2, "FnValue", 1, 18, "false", "-> bool")]
        text, _ = self.woven(source, mutants, [body])
        self.assertEqual(text, "fn f() -> bool { if on(1) { return true; } if on(2) { return false; } go() }")

    def test_arms_and_guards_are_removed_or_always_taken(self):
        source = "match a { A => 1, B if b < 0 => 2, _ => 3 }"
        guard = span(source, "b < 0")
        nodes = [
            node("arm", source.index("A"), span(source, source), empty(source.index("=>"))),
            node("guard", guard["start"], guard, empty(guard["start"])), self.operator(source, "b < 0", "<"),
        ]
        mutants = [
            change(1, "MatchArm", 1, 11, ""), change(3, "MatchArmGuard", 1, 24, "true"),
            change(4, "MatchArmGuard", 1, 24, "false"), change(5, "BinaryOperator", 1, 26, ">"),
        ]
        text, left_out = self.woven(source, mutants, nodes)
        guarded = "on(3) || (!on(4) && ((if on(5) { b > 0 } else { b < 0 })))"
        self.assertEqual(text, f"match a {{ A if !on(1) => 1, B if {guarded} => 2, _ => 3 }}")
        self.assertEqual(left_out, {})

    def test_a_required_arm_is_found_by_an_error_at_its_match(self):
        source = "match a { A => 1, B => 2, _ if c => 3, C => 4 }"
        arm = node("arm", source.index("A"), span(source, source), empty(source.index("=>")))
        wraps, _ = instrument.wraps(source.encode(), [change(1, "MatchArm", 1, 11, "")], [arm], ())
        woven, regions = weave.weave(source.encode(), wraps)
        self.assertEqual(weave.blamed(regions, [(woven.index(b"a"), woven.index(b"a") + 1)]), {1})

    def test_a_const_fn_loses_the_keyword_unless_the_compiler_evaluates_it(self):
        source = "const fn f() -> u8 { a + b }"
        found = self.operator(source, "a + b", "+", const_fn={"name": "f", "at": 0})
        mutants = [change(1, "BinaryOperator", 1, 24, "-")]
        text, _ = self.woven(source, mutants, [found])
        self.assertEqual(text, "/* const */ fn f() -> u8 { (if on(1) { a - b } else { a + b }) }")
        text, left_out = self.woven(source, mutants, [found], {"f"})
        self.assertEqual((text, left_out), (source, {1: instrument.COMPILER}))

    def test_mutants_that_cannot_be_built_in_are_listed_with_the_reason(self):
        source = "a + b"
        mutants = [change(1, "BinaryOperator", 1, 3, "-")]
        for fixed, reason in (
            ("constant", instrument.COMPILER), ("last", instrument.DOES_NOT_COMPILE), ("let", instrument.LET),
        ):
            found = self.operator(source, "a + b", "+", fixed=fixed)
            self.assertEqual(self.woven(source, mutants, [found]), (source, {1: reason}))
        self.assertEqual(self.woven(source, mutants, []), (source, {1: instrument.UNKNOWN}))
        self.assertEqual(self.woven(source, [change(1, "StructField", 1, 1, "")], [])[1], {1: instrument.GENRE})
        body = node("body", 0, empty(0), empty(0))
        iterator = change(1, "FnValue", 1, 1, "::std::iter::empty()", "-> impl Iterator<Item =u8>")
        self.assertEqual(self.woven(source, [iterator], [body])[1], {1: instrument.IMPL})


if __name__ == "__main__":
    unittest.main()

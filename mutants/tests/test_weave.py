"""Tests of inserting text and of mapping it back."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "harness"))

from mutant import Offsets  # noqa: E402
from weave import Part, Region, Wrap, blamed, weave  # noqa: E402


def wrap(start, end, before, after, mutant):
    return Wrap(start, end, (Part(before, (mutant,)),), after)


class Places(unittest.TestCase):
    def test_columns_are_characters_and_offsets_are_bytes(self):
        text = "é = 1;\n// 𝄞 ü\nlet a = b;\n"
        offsets = Offsets(text)
        for line, column, found in [(1, 1, "é"), (1, 3, "="), (2, 6, "ü"), (3, 1, "let"), (3, 9, "b")]:
            rest = text.encode()[offsets.at(line, column):].decode()
            self.assertTrue(rest.startswith(found), (line, column, rest))


class Weaving(unittest.TestCase):
    def woven(self, source, *wraps):
        return weave(source.encode(), list(wraps))[0].decode()

    def test_nested_wraps_keep_their_order_in_any_order_of_arguments(self):
        outer, left, right = wrap(0, 9, "<o ", " o>", 1), wrap(0, 4, "<l ", " l>", 2), wrap(6, 9, "<r ", " r>", 3)
        for wraps in ([outer, left, right], [right, left, outer], [left, outer, right]):
            self.assertEqual(self.woven("ab+c - de", *wraps), "<o <l ab+c l> -<r  de r> o>")

    def test_of_two_equal_ranges_the_first_is_the_outer_one(self):
        first, second = wrap(1, 2, "[", "]", 1), wrap(1, 2, "(", ")", 2)
        self.assertEqual(self.woven("abc", first, second), "a[(b)]c")
        self.assertEqual(self.woven("abc", second, first), "a([b])c")

    def test_an_insertion_goes_between_an_end_and_a_beginning(self):
        ends, begins = wrap(0, 1, "(", ")", 1), wrap(1, 2, "[", "]", 2)
        first, second = wrap(1, 1, "x", "", 3), wrap(1, 1, "y", "", 4)
        self.assertEqual(self.woven("ab", begins, first, ends, second), "(a)xy[b]")

    def test_nothing_of_the_source_is_lost(self):
        self.assertEqual(self.woven("äöü"), "äöü")
        self.assertEqual(self.woven("äöü", wrap(2, 4, "⟨", "⟩", 1)), "ä⟨ö⟩ü")

    def test_regions_are_where_the_texts_for_mutants_are(self):
        one = Wrap(2, 3, (Part("("), Part("äx ", (7,)), Part("y", (8,)), Part(" z ")), ")")
        woven, regions = weave(b"a b c", [one, wrap(0, 5, "{", "}", 9)])
        texts = {(region.mutants, region.is_whole): woven[region.start:region.end].decode() for region in regions}
        self.assertEqual(texts, {
            ((7,), False): "äx ",
            ((8,), False): "y",
            ((7, 8), True): "(äx y z b)",
            ((9,), False): "{",
            ((9,), True): "{a (äx y z b) c}",
        })


class Blame(unittest.TestCase):
    regions = [
        Region(10, 20, (1,), False), Region(20, 30, (2,), False), Region(8, 40, (1, 2), True), Region(12, 18, (3,), False),
        Region(0, 100, (4,), True),
    ]

    def test_the_smallest_text_for_a_mutant_around_the_place(self):
        self.assertEqual(blamed(self.regions, [(13, 15)]), {3})
        self.assertEqual(blamed(self.regions, [(10, 20)]), {1})

    def test_a_text_for_a_mutant_at_the_second_span_beats_a_whole_wrap_at_the_first(self):
        self.assertEqual(blamed(self.regions, [(32, 34), (22, 24)]), {2})

    def test_all_mutants_of_the_smallest_wrap_if_none_has_a_text_there(self):
        self.assertEqual(blamed(self.regions, [(32, 34)]), {1, 2})
        self.assertEqual(blamed(self.regions, [(50, 60)]), {4})

    def test_the_first_within_the_span_if_nothing_is_around_it(self):
        self.assertEqual(blamed(self.regions[:2], [(0, 50)]), {1})
        self.assertEqual(blamed(self.regions[:2], [(40, 50)]), set())


if __name__ == "__main__":
    unittest.main()

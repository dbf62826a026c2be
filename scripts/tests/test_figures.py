"""Tests that figures without a record are detected (scripts/check-figures)."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("check_figures", str(ROOT / "scripts/check-figures"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_figures", LOADER))
LOADER.exec_module(check)

FIGURES = "| | ours |\n| --- | --- |\n| 8 B | 304 k |\n| 1 KiB | 291 k |\n"
RECORD = "[record](../bench/record/2026-11-21-standard.md)"


def faults(text, name="docs/made-up.md"):
    return list(check.faults(name, text))


class Figures(unittest.TestCase):
    def test_a_table_of_figures_needs_a_record_or_a_note_that_there_is_none(self):
        self.assertEqual(len(faults(f"## Speed\n\n{FIGURES}")), 1)
        self.assertEqual(faults(f"## Speed\n\n{RECORD}\n\n{FIGURES}"), [])
        self.assertEqual(faults(f"## Speed\n\nThere is no record.\n\n{FIGURES}"), [])

    def test_a_record_of_one_section_does_not_apply_to_the_next(self):
        for begin in ("## Size\n\n", "**Size** of all:\n\n"):
            self.assertEqual(len(faults(f"## Speed\n\n{RECORD}\n\n{begin}{FIGURES}")), 1)

    def test_a_missing_record_is_always_a_fault(self):
        gone = "[record](../bench/record/1999-01-01-standard.md)"
        self.assertEqual(len(faults(f"# Speed\n\n{gone}\n")), 1)
        self.assertEqual(len(faults(f"# Speed\n\n{gone}\n", "docs/gateway/configuration.md")), 1)

    def test_tables_of_words_and_code_are_ignored(self):
        self.assertEqual(faults("| name | what |\n| --- | --- |\n| a | a thing |\n| b | 2 things |\n"), [])
        self.assertEqual(faults(f"```\n{FIGURES}```\n"), [])


if __name__ == "__main__":
    unittest.main()

"""Loads the Autobahn test suite, which is written in Python 2, in Python 3.

The packages stay on disk as published. A hook translates their source by the rules below when it is
imported. A rule that matches nothing means that the suite is not the expected one, which is an
error.

In Python 2 a string literal is a string of bytes. The hook reads the source as Latin-1, so that
each literal becomes a `str` with one character (U+0000 to U+00FF) per byte; `octets` converts
between the suite and Autobahn.
"""

import importlib.machinery
import importlib.util
import os
import re
import sys
import types
import warnings

SUITE = "autobahntestsuite"
VERSION = "25.10.1"

# Each rule: its purpose, the modules to which it applies, the pattern, the replacement.
RULES = [
    ("unlisted case that needs Python 2", SUITE, r"^from case9_9_1 import \*$", r""),
    ("implicit relative import", SUITE, r"^from (case\w*) import", r"from .\1 import"),
    ("print statement", SUITE, r"^( *)print (.+)$", r"\1print(\2)"),
    ("dict.has_key", SUITE, r"([\w.\[\]]+)\.has_key\(([^()]+)\)", r"(\2 in \1)"),
    ("xrange", SUITE, r"\bxrange\b", r"range"),
    ("old-style base class", SUITE, r"\(object, Case, ?\)", r"(Case, )"),
    ("hexadecimal form of a byte string", SUITE, r"\bbinascii\b", r"octets"),
    ("validation of a byte string", SUITE, r"\.validate\((vss\[:i\])\)", r".validate(octets.to_bytes(\1))"),
    ("decoding of a byte string", SUITE, r"\bdd\.decode\(", r"octets.to_bytes(dd).decode("),
    ("decoding of a byte string", SUITE, r"\bmsg\.decode\(", r"octets.to_bytes(msg).decode("),
    ("hash of a byte string", SUITE, r"\bm\.update\(msg\)", r"m.update(octets.to_bytes(msg))"),
    ("division of integers", SUITE, r"(len\(self\.payload\)) / (self\.p\.autoFragmentSize)", r"\1 // \2"),
    ("division of integers", "autobahn", r"(payload_len) / (len\(payload\))", r"\1 // \2"),
]

# `autobahn` is Python 3 except for one line; its other modules are not translated.
TRANSLATED = re.compile(rf"{SUITE}\.(case(set|\..+)?|fuzzing)|autobahn\.websocket\.protocol")


class Translator(importlib.machinery.SourceFileLoader):
    """Compiles a module from its translated source."""

    unused = set(range(len(RULES)))

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        source = self.get_data(path).decode("latin-1").replace("\r\n", "\n")
        for number, (_, package, pattern, replacement) in enumerate(RULES):
            if fullname.split(".")[0] == package:
                source, count = re.subn(pattern, replacement, source, flags=re.MULTILINE)
                if count:
                    self.unused.discard(number)
        with warnings.catch_warnings():
            # Python 2 accepted "\." in a string.
            warnings.simplefilter("ignore")
            return compile(source, path, "exec")


class Finder:
    """Passes the modules to be translated to `Translator`, and leaves others to the usual
    finders."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if not TRANSLATED.fullmatch(fullname):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = Translator(spec.loader.name, spec.loader.path)
        return spec


def load():
    """Imports the suite and returns its module `fuzzing`, ready for Python 3."""
    home = importlib.util.find_spec(SUITE).submodule_search_locations[0]

    # The package's `__init__` starts every tool of the suite; we use only the fuzzing modes.
    package = types.ModuleType(SUITE)
    package.__path__ = [home]
    package.version = VERSION
    sys.modules[SUITE] = package

    # Replaces the module of style sheets: we do not write HTML.
    styles = types.ModuleType("report")
    styles.CSS_COMMON = styles.CSS_DETAIL_REPORT = styles.CSS_MASTER_REPORT = styles.JS_MASTER_REPORT = ""
    sys.modules["report"] = styles

    # Removed from current setuptools; the suite uses it only to find its test data.
    resources = types.ModuleType("pkg_resources")
    resources.resource_filename = lambda _package, name: os.path.join(home, name)
    sys.modules["pkg_resources"] = resources

    sys.meta_path.insert(0, Finder)
    fuzzing = importlib.import_module(f"{SUITE}.fuzzing")
    if Translator.unused:
        names = ", ".join(f"{RULES[n][0]} ({RULES[n][1]})" for n in sorted(Translator.unused))
        raise RuntimeError(f"rules without a match in {SUITE} {VERSION}: {names}")

    # The suite compares pickles, which differ in Python 3 between equal objects with different
    # sharing.
    fuzzing.Case.compare = lambda _case, left, right: left == right
    return fuzzing

#!/usr/bin/env python3
"""Plants one violation at a time in a small tree and expects check_text.py to name it."""
import contextlib
import io
import re
import sys
import unittest
from pathlib import Path, PurePosixPath
from unittest import mock

import check_text
from tree import Tree
from words import find_words


def run(files):
    """{path: text} -> (exit code, what was printed)."""
    out = io.StringIO()
    with Tree(files) as root, mock.patch.object(sys, "argv", ["check_text.py", root]), contextlib.redirect_stdout(out):
        return check_text.main(), out.getvalue()


class CheckText(unittest.TestCase):
    def test_violations(self):
        for text, line, words in (
            ("int a;\nint b; \n", 2, "whitespace"),
            ("int a;\r\n", 1, "whitespace"),
            ("\tint a;\n", 1, "a tab"),
            ("int a;", 1, "no newline"),
            ("int a;\n" * 501, 501, "501 lines"),
            ('open("/' + 'home/me/x");\n', 1, "one machine"),
            ("cd /" + "work\n", 1, "one machine"),
            ("// TO" + "DO: later\n", 1, "unfinished"),
            ("// fine\n// it goes on\n", 2, "'goes on': continue, resume"),
        ):
            code, out = run({"src/a.cpp": text})
            self.assertEqual(code, 1, text[:20])
            self.assertIn(f"src/a.cpp:{line}: ", out)
            self.assertIn(words, out)
            self.assertIn(" 1 violations", out)

    def test_what_passes(self):
        text = "// $PWD/work/x, net/work/y, ./home/z, /data, PHOTODO\n" + "int a;\n" * 499
        self.assertEqual(run({"src/a.cpp": text, "data.bin": "\t \n", "README.md": "x\n" * 900})[0], 0)

    def test_other_encodings_are_named(self):
        with Tree({"src/a.cpp": ""}) as root:
            with open(f"{root}/src/a.cpp", "wb") as file:
                file.write(b"// caf\xe9\n")
            self.assertIn("not UTF-8", check_text.check_file(root, PurePosixPath("src/a.cpp"))[0][1])


def words(text, path="src/a.cpp"):
    return [(line, found) for line, found, _ in find_words(PurePosixPath(path), text)]


class Words(unittest.TestCase):
    def test_found_in_any_case_in_names_and_across_lines(self):
        self.assertEqual(words("// Anew\n"), [(1, "anew")])
        self.assertEqual(words("int x;\n// it goes\n// on\n"), [(2, "goes on")])
        self.assertEqual(words('log("it goes "\n    "on");\n'), [(1, "goes on")])
        self.assertEqual(words("bool goes_on();\nclass GoesOn;\n"), [(1, "goes on"), (2, "GoesOn")])
        self.assertEqual(words("// that is no\n// GPU of ours\n"), [(1, "is no")])
        self.assertEqual(words("// the neighbour and its colour\n"), [(1, "colour"), (1, "neighbour")])

    def test_names_of_other_programs(self):
        self.assertEqual(words('state = "CANCELLED";\n// cancelled\n'), [(2, "cancelled")])

    def test_english_that_resembles_them(self):
        for text in ("there is no GPU", "there\n# are no images", "it is no longer there", "it was no more than 3", "besides", "the stand-in",
                     "stands in for Slurm", "x lies in [0, 1)", "licensed", "<picture>", "an initial promise", "foretold", "wanted",
                     "a greyhound bus is one word"):
            found = [] if "greyhound" not in text else [(1, "greyhound")]
            self.assertEqual(words("# " + text + "\n", "a.py"), found, text)

    def test_the_table_for_people_is_the_list(self):
        text = (Path(__file__).resolve().parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
        table = text[text.index("<!-- words -->"):text.index("<!-- end of words -->")]
        rows = [line.strip("| ").split(" | ") for line in table.split("\n") if line.startswith("|")][2:]
        self.assertGreater(len(rows), 15)
        for write, instead_of in rows:
            for word in re.split(r"[,;] ", instead_of):
                self.assertTrue(words(f"it {word} \n"), f"{word} in the table, and no pattern for it")
            for word in re.split(r"[,;] ", re.sub(r"\(.*?\)", "", write)):
                self.assertEqual(words(f"{word}\n"), [], f"the table recommends {word}")
        self.assertEqual(words(text, "CONTRIBUTING.md"), [])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Plants one violation at a time in a small tree and expects check_text.py to name it."""
import contextlib
import io
import sys
import unittest
from pathlib import PurePosixPath
from unittest import mock

import check_text
from tree import Tree


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


if __name__ == "__main__":
    unittest.main()

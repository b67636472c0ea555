#!/usr/bin/env python3
"""Plants violations in a small tree and expects check_tests.py to name each; and a clean tree that passes."""
import unittest

import check_tests
from tree import Tree

CLEAN = {
    "kernels/pool/pool.h": "",
    "src/comm/session.h": "",
    "tests/CMakeLists.txt": "",
    "tests/kernels/kernel_support.h": "namespace simclr::test {\n}\n",
    "tests/kernels/pool/pool_test.cpp": "namespace simclr {\n}\n",
    "tests/kernels/pool/plans/plans_test.cpp": "",
    "tests/comm/session_test.cpp": "",
    "tests/integration/common.py": "",
    "tests/harness/ranks.h": "namespace simclr {\n}\n",
    "emulator/tests/launch.h": "namespace simclr::test {\n}\n",
}


def violations(**changed):
    """["path:line: rule"] of CLEAN with changed files; in their names __ stands for / and DOT for a dot."""
    files = dict(CLEAN, **{name.replace("__", "/").replace("DOT", "."): text for name, text in changed.items()})
    with Tree(files) as root:
        return [f"{path}:{line}: {rule}" for path, line, rule in check_tests.check(root)]


class CheckTests(unittest.TestCase):
    def one(self, place, words, **changed):
        found = violations(**changed)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ":"), found[0])
        self.assertIn(words, found[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(violations(), [])

    def test_a_folder_without_sources(self):
        self.one("tests/liveness/a_test.cpp:1", "src/liveness does not exist", tests__liveness__a_testDOTcpp="", tests__liveness__b_testDOTcpp="")
        self.one("tests/kernels/relu/a_test.cpp:1", "kernels/relu does not exist", tests__kernels__relu__a_testDOTcpp="")

    def test_helpers_have_one_suffix(self):
        for name in ("comm_testing", "comm_utils", "test_utils", "comm_parts"):
            file = f"tests/comm/a_{name}.h"
            self.one(f"{file}:1", "NAME_support.h", **{file.replace("/", "__").replace(".", "DOT"): ""})

    def test_helpers_have_one_namespace(self):
        self.one("tests/comm/a_support.h:2", "not simclr::testing", tests__comm__a_supportDOTh="\nnamespace simclr::testing {\n}\n")
        self.one("emulator/tests/a.h:1", "not simclr::emulator_tests", emulator__tests__aDOTh="namespace simclr::emulator_tests {\n}\n")


if __name__ == "__main__":
    unittest.main()

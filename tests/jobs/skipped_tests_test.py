"""What scripts/skipped_tests.py reads from ctest's log: skipped cases with their reason, those that lack SIMCLR_SHARED apart."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/skipped_tests.py"

LOG = """Start testing: Dec 01 04:33 UTC
----------------------------------------------------------
1/3 Testing: data_test
1/3 Test: data_test
[ RUN      ] Cifar10.ReadsTheRealFiles
../../tests/data/cifar10_test.cpp:130: Skipped
SIMCLR_SHARED is not set: no real images
[  SKIPPED ] Cifar10.ReadsTheRealFiles (0 ms)
[ RUN      ] Npy.IsRead
[       OK ] Npy.IsRead (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Cifar10.ReadsTheRealFiles
Test Passed.
2/3 Testing: conv2d_test
[ RUN      ] Shapes/Winograd.Bits/8x8
../../tests/kernels/conv2d_winograd_test.cpp:29: Skipped
this processor has
no Winograd convolution

[  SKIPPED ] Shapes/Winograd.Bits/8x8 (0 ms)
[ RUN      ] Shapes/Winograd.Bits/9x9
../../tests/kernels/conv2d_winograd_test.cpp:29: Skipped
this processor has
no Winograd convolution

[  SKIPPED ] Shapes/Winograd.Bits/9x9 (0 ms)
3/3 Testing: program_export
SKIPPED: features against torchvision: No module named 'torch'
"""


class SkippedTests(unittest.TestCase):
    def report(self, *words, log=LOG):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "Testing/Temporary"
            place.mkdir(parents=True)
            (place / "LastTest.log").write_text(log)
            return subprocess.run([sys.executable, SCRIPT, folder, *words], capture_output=True, text=True)

    def test_each_reason_is_listed_once_and_the_missing_folder_first(self):
        lines = self.report().stdout.splitlines()
        self.assertEqual(lines, [
            "skipped cases: 1 for lack of SIMCLR_SHARED, 3 for other reasons",
            "  data_test Cifar10.ReadsTheRealFiles: SIMCLR_SHARED is not set: no real images",
            "    1 in program_export: features against torchvision: No module named 'torch'",
            "    2 in conv2d_test (Winograd): this processor has no Winograd convolution"])

    def test_a_missing_variable_fails_on_request(self):
        self.assertEqual(self.report().returncode, 0)
        self.assertEqual(self.report("--fail-on", "SIMCLR_SHARED").returncode, 1)
        self.assertEqual(self.report("--fail-on", "SIMCLR_OTHER").returncode, 0)

    def test_nothing_skipped(self):
        result = self.report("--fail-on", "SIMCLR_SHARED", log="1/1 Testing: data_test\n[       OK ] A.B (0 ms)\n")
        self.assertEqual((result.returncode, result.stdout), (0, "skipped cases: 0 for lack of SIMCLR_SHARED, 0 for other reasons\n"))

    def test_wrong_use_is_one_line(self):
        for words in ([], ["--help"], ["/nonexistent"], ["a", "--fail-on"]):
            result = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), words)


if __name__ == "__main__":
    unittest.main()

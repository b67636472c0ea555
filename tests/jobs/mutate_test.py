"""What scripts/mutate/mutations.py makes of a text. Whether tests catch the mutations is the business of scripts/mutate.sh."""

import pathlib
import subprocess
import sys
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "mutate"))

import mutations  # noqa: E402


def made(text):
    """The mutated texts, each with its kind."""
    return [(m.kind, m.apply(text)) for m in mutations.mutations(text)]


class Mutations(unittest.TestCase):
    def test_signs(self):
        self.assertEqual(made("x = a + b;\n"), [("sign", "x = a - b;\n")])
        self.assertEqual(made("sum -= f(-a);\n"), [("sign", "sum += f(-a);\n"), ("sign", "sum -= f(a);\n")])
        self.assertEqual(made("++i; p->x = *q * 1e-3;\n"), [])

    def test_comparisons(self):
        self.assertEqual(made("if (a <= b) return;\n"), [("comparison", "if (a < b) return;\n")])
        self.assertEqual([text for _, text in made("a == b; c != d;\n")], ["a != b; c != d;\n", "a == b; c == d;\n"])
        self.assertEqual(made("template <class T>\nstd::vector<int> f(std::map<int, T>&& m);\n"), [])

    def test_indices(self):
        (kind, text), = made("y = x[i];\n")
        self.assertEqual(kind, "index")
        self.assertIn(text, ("y = x[i + 1];\n", "y = x[i - 1];\n"))
        self.assertEqual(made("y = x[0];\n"), [("index", "y = x[0 + 1];\n")])
        for text in ("auto f = [&, n] { return n; };\n", "[[nodiscard]] int f();\n", "float tile[16];\n", "delete[] p;\n"):
            self.assertEqual(made(text), [], text)

    def test_reductions(self):
        self.assertEqual(made("m = std::max(a, b);\n"), [("reduction", "m = std::min(a, b);\n")])
        text = "  ranks_.all_gather(send,\n                    receive);\n  next();\n"
        self.assertEqual(made(text), [("reduction", "  ;\n  next();\n")])
        self.assertEqual(made("  const auto all = ranks_.all_gather(send);\n"), [])

    def test_text_without_behavior_is_left_alone(self):
        for text in ('// a + b\n', 'log("a + b");\n', "/* a < b */\n", "#if A > B\n", "c = '+';\n", "static_assert(a + b == c);\n",
                     "v.reserve(n + 1);\n", 'fail(kUsage, "{} of {}", i + 1, n - 1);\n'):
            self.assertEqual(made(text), [], text)

    def test_place_and_description(self):
        text = "int f() {\n  // a + b\n  return a +\n         b + c;\n}\n"
        found = mutations.mutations(text)
        self.assertEqual([m.line(text) for m in found], [3, 4])
        self.assertEqual([m.describe(text) for m in found], ["return a -", "b - c;"])
        left_out = "  ordered_sum(x);\n"
        self.assertEqual(mutations.mutations(left_out)[0].describe(left_out), "left out: ordered_sum(x)")

    def test_the_choice_is_spread_and_repeatable(self):
        found = list(range(100))
        chosen = mutations.spread(found, 10, "1 a.cpp")
        self.assertEqual(chosen, mutations.spread(found, 10, "1 a.cpp"))
        self.assertEqual([c // 10 for c in chosen], list(range(10)))
        self.assertNotEqual(chosen, mutations.spread(found, 10, "2 a.cpp"))
        self.assertEqual(mutations.spread(found, 0, "1"), found)
        self.assertEqual(mutations.spread(found, 200, "1"), found)


class CommandLine(unittest.TestCase):
    def test_lists_without_building(self):
        file = "kernels/l2_normalize/l2_normalize_cpu.cpp"
        result = subprocess.run([SCRIPTS / "mutate.sh", file, "--limit", "4", "--list"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line.startswith(f"{file}:") for line in result.stdout.splitlines()], [True] * 4)

    def test_refuses_other_files(self):
        result = subprocess.run([SCRIPTS / "mutate.sh", "README.md"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()

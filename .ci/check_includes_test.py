#!/usr/bin/env python3
"""Plants violations in a small tree and sees check_includes.py name each; and a clean tree that it lets pass."""
import contextlib
import io
import sys
import unittest
from unittest import mock

import check_includes
from tree import Tree

CLEAN = {
    "kernels/common/error.h": "#pragma once\n#include <string>\n#if defined(__x86_64__)\n#endif\n",
    "kernels/common/onednn_v2/onednn_api.h": "#pragma once\n#include <oneapi/dnnl/dnnl.hpp>\n",
    "kernels/common/onednn_v3/onednn_api.h": "#pragma once\n#include <oneapi/dnnl/dnnl.hpp>\n",
    "kernels/relu/relu.h": '#pragma once\n#include "kernels/common/error.h"\n',
    "kernels/relu/relu.cpp": '#include "kernels/relu/relu.h"\n#include "onednn_api.h"\n',
    "kernels/add/add.h": "#pragma once\n",
    "src/config/loader.cpp": "#include <yaml-cpp/yaml.h>\n",
    "src/base/version.h.in": "#pragma once\n",
    "src/comm/session.h": '#pragma once\n#include "src/base/version.h"\n',
    "src/comm/session.cpp": '#include <mpi.h>\n\n#include "src/comm/session.h"\n',
    "src/nn/net.h": '#pragma once\n#include "src/comm/session.h"\n#include "kernels/relu/relu.h"\n',
    "src/train/loop.h": '#pragma once\n#include "src/nn/net.h"\n',
    "src/main.cpp": '#include "src/train/loop.h"\n',
    "tests/comm/session_test.cpp": '#include <mpi.h>\n#include "src/comm/session.h"\n',
    "tests/kernels/relu_test.cpp": "#include <oneapi/dnnl/dnnl.hpp>\n",
    "bench/relu.cpp": "#include <dnnl.hpp>\n",
}


def violations(**changed):
    """{file: text} over CLEAN -> ["path:line: rule"]; in the names of `changed`, __ stands for / and DOT for a dot."""
    files = dict(CLEAN, **{name.replace("__", "/").replace("DOT", "."): text for name, text in changed.items()})
    with Tree(files) as root:
        return [f"{path}:{line}: {rule}" for path, line, rule in check_includes.check(root)]


class CheckIncludes(unittest.TestCase):
    def one(self, place, words, **changed):
        """Exactly one violation: at place, its rule holds the words."""
        found = violations(**changed)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ":"), found[0])
        self.assertIn(words, found[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(violations(), [])

    def test_a_folder_does_not_include_what_stands_after_it(self):
        self.one("src/nn/net.cpp:2", "src/nn stands before src/train", src__nn__netDOTcpp='\n#include "src/train/loop.h"\n')

    def test_kernels_do_not_include_src(self):
        self.one("kernels/add/add.cpp:1", "kernels stands before src/comm",
                 kernels__add__addDOTcpp='#include "src/comm/session.h"\n')

    def test_nothing_includes_main(self):
        self.one("src/train/loop.cpp:1", "src/train stands before src ",
                 src__train__loopDOTcpp='#include "src/main.h"\n', src__mainDOTh="#pragma once\n")

    def test_an_op_does_not_include_another_op(self):
        self.one("kernels/add/add.cpp:1", "its own folder", kernels__add__addDOTcpp='#include "kernels/relu/relu.h"\n')

    def test_ops_of_one_family_share_a_folder(self):
        include = '#include "kernels/pool_common/rows.h"\n'
        rows = {"kernels__pool_common__rowsDOTh": "#pragma once\n"}
        self.assertEqual(violations(kernels__pool_max__poolDOTcpp=include, **rows), [])
        self.one("kernels/add/add.cpp:1", "its own folder", kernels__add__addDOTcpp=include, **rows)

    def test_common_does_not_include_an_op(self):
        self.one("kernels/common/error.cpp:1", "its own folder",
                 kernels__common__errorDOTcpp='#include "kernels/relu/relu.h"\n')

    def test_the_product_does_not_include_tests(self):
        self.one("src/nn/net.cpp:1", "not in the dependency order",
                 src__nn__netDOTcpp='#include "tests/harness/ranks.h"\n', tests__harness__ranksDOTh="#pragma once\n")

    def test_a_kernel_is_a_leaf(self):
        for header in ("spdlog/spdlog.h", "filesystem", "fstream", "nlohmann/json.hpp"):
            self.one("kernels/add/add.cpp:1", "is a leaf", kernels__add__addDOTcpp=f"#include <{header}>\n")

    def test_mpi_and_nccl_under_comm_alone(self):
        self.one("src/nn/net.cpp:3", "MPI and NCCL", src__nn__netDOTcpp="\n\n#include <mpi.h>\n")
        self.one("tests/nn/net_test.cpp:1", "MPI and NCCL", tests__nn__net_testDOTcpp="#include <nccl.h>\n")

    def test_device_libraries_under_kernels_and_device_alone(self):
        for header in ("oneapi/dnnl/dnnl.hpp", "dnnl.h", "cudnn_frontend.h", "cublas_v2.h"):
            self.one("src/loss/loss.cpp:1", "cuDNN", src__loss__lossDOTcpp=f"#include <{header}>\n")

    def test_yaml_in_one_file(self):
        found = violations(src__config__secondDOTcpp="#include <yaml-cpp/yaml.h>\n")
        self.assertEqual(len(found), 2, found)
        self.assertIn("exactly one .cpp file", found[0])
        self.one("src/config/loader.h:2", "exactly one .cpp file", src__config__loaderDOTcpp="",
                 src__config__loaderDOTh="#pragma once\n#include <yaml-cpp/yaml.h>\n")

    def test_no_conditionals_outside_common(self):
        for line in ("#ifdef HAVE_CUDA", "# if defined(X)", "#ifndef NDEBUG"):
            self.one("src/nn/net.cpp:2", "no #if", src__nn__netDOTcpp=f"\n{line}\n#endif\n")

    def test_headers_have_pragma_once(self):
        self.one("src/nn/other.h:1", "#pragma once", src__nn__otherDOTh="// guards forgotten\n")

    def test_includes_are_written_from_the_root(self):
        self.one("src/nn/net.cpp:1", "repository root", src__nn__netDOTcpp='#include "net.h"\n')

    def test_an_unknown_folder_is_named(self):
        self.one("src/extra/x.cpp:1", "src/extra is not in the dependency order", src__extra__xDOTcpp="int x;\n")

    def test_the_program_prints_the_violation_and_ends_with_1(self):
        for files, code, words in (({"src/nn/a.cpp": '#include "a.h"\n'}, 1, "src/nn/a.cpp:1: "), (CLEAN, 0, " 0 violations")):
            with Tree(files) as root, mock.patch.object(sys, "argv", ["check_includes.py", root]):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    self.assertEqual(check_includes.main(), code)
                self.assertIn(words, out.getvalue())


if __name__ == "__main__":
    unittest.main()

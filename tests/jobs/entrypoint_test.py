"""The entry point of the container image: options and subcommands are those of simclr_train, anything else is a command; either way it
takes the entry point's own place, process 1 of a container, so that signals reach it."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRYPOINT = ROOT / "scripts/docker/entrypoint.sh"
SUBCOMMANDS = [name for path in sorted((ROOT / "src/config").glob("*.cpp"))
               for name in re.findall(r'add_subcommand\(\s*"(\w+)"', path.read_text())]


class Entrypoint(unittest.TestCase):
    def words(self, *arguments):
        """What ran, by which process, with which words."""
        with tempfile.TemporaryDirectory(prefix="simclr_entry_") as folder:
            for name in ("simclr_train", "mpirun"):
                program = pathlib.Path(folder) / name
                program.write_text('#!/bin/sh\nprintf "%s|" "$(basename "$0")" "$$" "$@"\n')
                program.chmod(0o755)
            process = subprocess.Popen([str(ENTRYPOINT), *arguments], env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                                       stdout=subprocess.PIPE, text=True)
            output, _ = process.communicate(timeout=20)
            name, pid, *rest = output.split("|")[:-1]
            self.assertEqual(int(pid), process.pid, "in its own place")
            return [name, *rest]

    def test_options_are_the_programs(self):
        self.assertEqual(self.words("--config", "a file.yaml"), ["simclr_train", "--config", "a file.yaml"])

    def test_subcommands_are_the_programs(self):
        self.assertGreaterEqual(len(SUBCOMMANDS), 8)
        for name in SUBCOMMANDS:
            self.assertEqual(self.words(name, "x"), ["simclr_train", name, "x"])

    def test_a_command_runs_as_it_is(self):
        self.assertEqual(self.words("mpirun", "-np", "2", "simclr_train"), ["mpirun", "-np", "2", "simclr_train"])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""tidy_commands.py IN OUT: a build's compile_commands.json as clang-tidy needs it: without precompiled headers and the
options of another compiler, and with an entry for each file that CMake compiles as part of a unity file."""
import json
import pathlib
import re
import sys

NOT_FOR_CLANG = re.compile(r" -Winvalid-pch -include \S*cmake_pch\.hxx| -Wno-stringop-overflow| -Wno-restrict")


def members(path):
    """The files that a unity file includes; another file is its own only member."""
    if not re.fullmatch(r"unity_\w+_cxx\.cxx", path.name):
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"$', path.read_text(), re.MULTILINE)]


def entries(command):
    path = pathlib.Path(command["directory"], command["file"])
    for member in members(path):
        line = NOT_FOR_CLANG.sub("", command["command"])
        yield dict(command, file=str(member), command=line.replace(str(path), str(member)))


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    commands = [entry for command in json.loads(source.read_text()) for entry in entries(command)]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(commands, indent=1))


if __name__ == "__main__":
    main()

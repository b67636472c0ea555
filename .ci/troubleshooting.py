#!/usr/bin/env python3
"""Keeps the lists of messages in docs/troubleshooting.md those of the sources.

Usage: troubleshooting.py [ROOT]          names messages that the page lacks, exit code 1 when there is one
       troubleshooting.py --write [ROOT]  writes the lists anew; the text around them stays
A message is the first literal of a call of fail, Error, AgreedError or log_warning. What follows its last "; " is
its own cure; a message without one gets that of its exit code, below.
"""
import re
import sys
from pathlib import Path

from sources import list_files

PAGE = "docs/troubleshooting.md"
CODES = {"kUsage": "2", "kData": "3", "kDevice": "4", "kDiverged": "5", "kOutput": "6", "kOther": "1"}
CURES = {
    "2": "correct what it names; `simclr_train --help` and configs/reference.yaml say what is allowed",
    "3": "the file is damaged or of another kind: fetch it again, or correct data.format and data.path",
    "4": "see the advice above this list; if it comes again on one host alone, leave that host out",
    "5": "lower optimizer.base_lr, warm up longer or raise loss.temperature",
    "6": "look at the path: free space, permissions, a damaged file; then start the same command again",
    "1": "a defect of the program: keep the line and the configuration, and report them",
    "warning": "nothing has to be done at once; the line says what changes",
    "any": "look at the path that it names",
}
# Before those: what the sentence is about.
SPECIAL = [
    (r"^(data\.path|data\.synthetic|the training split|channel )|: (correct it|.*(lower|name the folder))|is not a multiple", "as the line says"),
    (r"^'…' (is no name of a convolution|names more plans)|^cuDNN (… makes no plan)|^cuDNN's",
     "go on with the GPU model and the cuDNN that the checkpoint was written with, or start anew with `--resume none`"),
    (r"^(cuBLAS|CUDA|cuDNN|NCCL)", "`nvidia-smi` on that host: memory taken by another program, a fault of the GPU, a driver that is too old"),
    (r"^oneDNN", "likely too little memory (`free -g`); else a defect: keep the line and the configuration, and report them"),
    (r"shared memory", "`df -h /dev/shm`; in a container give it more: `docker run --shm-size=1g`, or `--ipc=host`"),
    (r"^(tensor '|the header |the tensors take|the name '|a tensor's name|a header of|__metadata__|'…' holds …, which)|: damaged|no checkpoint of this",
     "the file is damaged, cut off or of another program: go on from an older checkpoint (`--resume PATH`), or copy it anew"),
    (r"checkpoint format version", "use the version of the program that wrote it"),
    (r"^cannot (open|read)|cannot be (opened|read)|^reading the folder", "does the path exist, and may you read it? `ls -l`"),
    (r"^cannot (write|flush|remove)", "free space and quota (`df -h`), permissions of the folder (`ls -ld`)"),
]
CALL = re.compile(r"\b(fail|AgreedError|Error|log_warning)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
ESCAPES = {r"\"": '"', r"\n": " ", r"\\": "\\", "{{": "{", "}}": "}"}


def arguments(text, start):
    """What stands between the parenthesis at start and its partner."""
    depth, i = 0, start
    while i < len(text):
        literal = LITERAL.match(text, i)
        if literal:
            i = literal.end()
            continue
        if text[i] == "'" and i + 2 < len(text):  # a character
            i += 4 if text[i + 1] == "\\" else 3
            continue
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return text[start + 1:i]
        i += 1
    return ""


def first_literal(code):
    """Adjacent literals as one; placeholders as an ellipsis. None where there is no sentence."""
    match = LITERAL.search(code)
    if not match:
        return None
    parts = []
    while match:
        parts.append(match.group(1))
        match = re.compile(r"\s*" + LITERAL.pattern).match(code, match.end())
    message = "".join(parts)
    message = re.sub(r"(?<!\{)\{[^{}]*\}", "…", message)
    for escape, plain in ESCAPES.items():
        message = message.replace(escape, plain)
    message = message.replace("{…}", "…").strip()
    return message if " " in message else None


def messages(root):
    """{section: sorted messages}."""
    found = {section: set() for section in CURES}
    for path in list_files(root):
        if path.parts[0] not in ("src", "kernels") or path.suffix not in (".cpp", ".h", ".cu"):
            continue
        text = re.sub(r"^\s*//.*$", "", (Path(root) / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
        for call in CALL.finditer(text):
            code = arguments(text, call.end() - 1)
            exit_code = re.match(r"\s*ExitCode::(k\w+)", code)
            is_warning = call.group(1) == "log_warning"
            if not is_warning and not re.match(r"\s*(ExitCode::\w+|\w*code(\(\))?|error\.code\(\)),", code):
                continue  # a declaration, or another Error
            message = first_literal(code)
            if message and not message.endswith(" error:"):
                section = "warning" if is_warning else CODES.get(exit_code.group(1), "any") if exit_code else "any"
                found[section].add(message)
    return {section: sorted(all_of_it, key=str.casefold) for section, all_of_it in found.items()}


def table(section, all_of_it):
    rows = ["| message | what to do |", "|---|---|"]
    for message in all_of_it:
        said, semicolon, cure = message.rpartition("; ")
        if semicolon and not re.search(r"[a-z]", cure):  # an advice that differs from call to call
            message, semicolon = said, ""
        if not semicolon:
            said = message
            cure = next((words for about, words in SPECIAL if re.search(about, message)), CURES[section])
        rows.append(f"| `{said.replace('`', chr(39)).replace('|', '/')}` | {cure.replace('|', '/')} |")
    return "\n".join(rows)


def render(page, found):
    for section, all_of_it in found.items():
        begin, end = f"<!-- messages {section} -->", f"<!-- end {section} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            sys.exit(f"{PAGE}: {begin} and {end} have to stand there once each")
        before, rest = page.split(begin)
        page = before + begin + "\n" + table(section, all_of_it) + "\n" + end + rest.split(end)[1]
    return page


def main():
    words = sys.argv[1:]
    write = words[:1] == ["--write"]
    root = Path(words[1 if write else 0] if len(words) > (1 if write else 0) else ".")
    old = (root / PAGE).read_text(encoding="utf-8")
    new = render(old, messages(root))
    if write:
        (root / PAGE).write_text(new, encoding="utf-8")
        return 0
    if old == new:
        print(f"troubleshooting check: {new.count(chr(10) + '| `')} messages")
        return 0
    come = sorted(set(new.splitlines()) - set(old.splitlines()))
    for line in come:
        print(f"{PAGE}: not listed: {line}")
    print("run: python3 .ci/troubleshooting.py --write")
    return 1 if come else 0


sys.exit(main())

"""Makes mutations of C++ text: small mistakes that compile and that a test should notice. Does not build or run anything.

Kinds: sign (+ - += -=, a leading minus), comparison (< <= > >= == !=), index (one off), reduction (max and min; the call
of a collective left out). The text is expected in the layout of clang-format, which sets spaces around binary operators
and none around the brackets of templates.
"""
import random
import re
from dataclasses import dataclass

COLLECTIVES = r"ordered_sum|all_gather|all_reduce|broadcast|gather_rows|add_shards|finish"


@dataclass(frozen=True)
class Mutation:
    kind: str
    start: int  # offsets into the text
    end: int
    new: str

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]

    def line(self, text):
        return text.count("\n", 0, self.start) + 1

    def describe(self, text):
        """The mutated line, without its indent."""
        if not self.new and "(" in text[self.start:self.end]:
            return "left out: " + " ".join(text[self.start:self.end].split())
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.end)
        whole = text[first:self.start] + self.new + text[self.end:last if last >= 0 else len(text)]
        return " ".join(whole.split())


# Regular expression for what is replaced, where group 1 is the place, and what replaces it.
OPERATORS = [
    ("sign", r" (\+)(?=\s)", "-"), ("sign", r" (-)(?=\s)", "+"), ("sign", r" (\+=)(?=\s)", "-="), ("sign", r" (-=)(?=\s)", "+="),
    ("sign", r"(?:\(|, |return |= |\? |: )(-)(?=[A-Za-z_(])", ""),
    ("comparison", r"(?<!template) (<)(?=\s)", "<="), ("comparison", r" (<=)(?=\s)", "<"), ("comparison", r" (>)(?=\s)", ">="),
    ("comparison", r" (>=)(?=\s)", ">"), ("comparison", r" (==)(?=\s)", "!="), ("comparison", r" (!=)(?=\s)", "=="),
    ("reduction", r"\b(max)\(", "min"), ("reduction", r"\b(min)\(", "max"),
    ("reduction", r"\b(fmaxf)\(", "fminf"), ("reduction", r"\b(fminf)\(", "fmaxf"),
]
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*', re.S | re.M)
UNMUTATED = re.compile(r"\bstatic_assert\(|\btemplate <|\breserve\(")  # no behavior of the program, or speed alone


def blank(text):
    """Same text with spaces for what is not code or says nothing about behavior; newlines and offsets stay."""
    def spaces(found):
        return re.sub(r"[^\n]", " ", found)

    out = list(text)
    formats = []
    for match in TOKEN.finditer(text):
        out[match.start():match.end()] = spaces(match.group(0))
        if match.group(0).startswith('"') and "{" in match.group(0):
            formats.append(match.end())
    # What a message prints: the arguments after its format string.
    for start in formats:
        end = closing(out, start)
        out[start:end] = spaces("".join(out[start:end]))
    code = "".join(out)
    for match in UNMUTATED.finditer(code):
        opening = "<" if match.group(0).endswith("<") else "("
        end = closing(code, match.end(), opening) + 1
        code = code[:match.start()] + spaces(code[match.start():end]) + code[end:]
    return code


def closing(code, start, opening="("):
    """Offset of the bracket that closes the one before `start`, or of the end of the text."""
    close = {"(": ")", "[": "]", "<": ">"}[opening]
    depth = 1
    for at in range(start, len(code)):
        if code[at] == opening:
            depth += 1
        elif code[at] == close:
            depth -= 1
            if depth == 0:
                return at
    return len(code)


def subscripts(code):
    """One off in x[i]; lambdas, attributes and declarations of arrays have no value before the bracket or none inside."""
    for match in re.finditer(r"[\w)\]]\[", code):
        end = closing(code, match.end(), "[")
        inside = code[match.end():end]
        declares = re.search(r"(?:float|double|int\w*|char|T|bool)&? \w+$", code[:match.start() + 1])
        if inside.strip() and "\n" not in inside and not declares and not code.startswith("delete[", match.start() - 5):
            yield Mutation("index", end, end, " + 1" if (match.start() % 2 == 0 or inside == "0") else " - 1")


def dropped_calls(code):
    """A statement that is one call of a collective, left out whole."""
    for match in re.finditer(rf"^[ ]*((?:[\w.]|->|::|\(\))*\b(?:{COLLECTIVES})\()", code, re.M):
        end = closing(code, match.end())
        if code[end:end + 2] == ");":
            yield Mutation("reduction", match.start(1), end + 1, "")


def mutations(text):
    """All mutations of a text, in the order of their places."""
    code = blank(text)
    found = [Mutation(kind, m.start(1), m.end(1), new) for kind, pattern, new in OPERATORS for m in re.finditer(pattern, code)]
    return sorted([*found, *subscripts(code), *dropped_calls(code)], key=lambda m: (m.start, m.end))


def spread(found, limit, seed):
    """At most `limit` of them: one from each of as many equal stretches of the file; same seed, same choice."""
    if not limit or len(found) <= limit:
        return found
    dice = random.Random(seed)
    edges = [round(i * len(found) / limit) for i in range(limit + 1)]
    return [found[dice.randrange(first, last)] for first, last in zip(edges, edges[1:])]

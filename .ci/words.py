"""The glossary of CONTRIBUTING.md as patterns: words of this project's texts that have a plainer equivalent.

Used by check_text.py. A pattern is matched without regard to case, across line breaks of comments and literals, and inside names
(`goes_on`, `GoesOn`), so write it in lower case with single spaces. Grammar is not checked: rewrite the sentence.
"""
import functools
import re
from pathlib import PurePosixPath

# (pattern, what to write instead)
WORDS = [
    (r"(?<!</)(?<!<)pictures?", "image, view"),
    (r"anew", "again, recomputed, from scratch"),
    (r"(?:there )?(?:is|was|are|were|be) no(?! (?:longer|later|earlier|more|fewer|less|larger|smaller|greater|higher|lower|better|worse|faster|slower|\d))",
     "is not a, has no"),
    (r"no good", "invalid, unreadable"),
    (r"beside", "next to, together with, compared with"),
    (r"(?:go|goes|going|went) on|gone on(?! rank)", "continue, resume"),
    (r"tells?|told", "report, log, name, say; told apart: distinguished"),
    (r"so many", "N, at least N, at most N"),
    (r"who(?:m|so)?ever", "name the subject"),
    (r"behind the (?:end|last|header|names|data)", "past the end, after the header, out of range"),
    (r"wants", "requires, needs"),
    (r"nobody(?:'s)?", "no rank, no caller; is ignored"),
    (r"as ever", "as before, the default"),
    (r"any more(?!\s+[a-z(])|no more (?:on|there|here)", "no longer"),
    (r"passed over", "skipped, ignored"),
    (r"(?:stands?|stood|standing) in(?! for)(?! line)", "is in; replaces"),
    (r"(?:lies?|lying) in(?! [\[(])", "is in"),
    (r"gets? on", "makes progress"),
    (r"that of the run", "name the subject"),
    (r"what came", "name the subject"),
    (r"looks (?:at|into|after)", "reads, checks, watches"),
    (r"by itself", "alone, automatically"),
    (r"there is room for", "N more fit"),
    (r"as far as", "up to; if, where"),
    (r"speaks? of", "names, refers to"),
    (r"for want of", "for lack of"),
    (r"mend(?:s|ed|ing)?", "fix, repair"),
    (r"hear(?:s|d)? of", "receive, know"),
    (r"leaves? with", "exit with"),
    (r"way out", "remedy; shutdown"),
    (r"(?:without|says?) a word", "without a message; reports"),
    (r"would do", "is allowed, suffices"),
    (r"for ever", "forever"),
    # American spelling, as identifiers and the field have it.
    (r"colou?r(?<=colour)\w*|grey\w*|(?:behavi|neighb|fav|hon)our\w*|centred?|artefact\w*|licen[c]e\w*|label[l](?:ed|ing)|cancel[l](?:ed|ing)|"
     r"(?:un|de|re|pre)?(?:normal|optim|initial|serial|standard|synchron|recogn|quant|minim|maxim|organ|general|parallel|vector|random|visual|final|util|summar)is(?:e|ed|es|er|ers|ing|ations?)",
     "American spelling"),
]

# Files that quote the words: this table and its tests, and bytes that are not prose.
EXCLUDED = (".ci/words.py", ".ci/check_text_test.py", "tests/fuzz/corpus/", "third_party/")
# Names of other programs that contain a word: Slurm's state of a job.
OTHERS = ("CANCELLED",)
# The table for people stands between these lines of CONTRIBUTING.md.
QUOTED = re.compile(r"<!-- words -->.*?<!-- end of words -->", re.S)

LINE_BREAK = re.compile(r"\"?\n[ \t]*(?://[/!]?|#|\*|>|\")?[ \t]*")
# "there is no GPU" is English; "it is no GPU" is not.
THERE_IS_NO = re.compile(r"there\s+\w+\s+no\b", re.I)
CAMEL = re.compile(r"\b[A-Za-z]\w*?[a-z0-9][A-Z]\w*")
RULES = [(re.compile(r"\b(?:" + pattern.replace(" ", r"\s+") + r")\b"), instead) for pattern, instead in WORDS]


def blank(match):
    return " " * len(match.group(0))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


@functools.lru_cache(maxsize=None)
def words_of_name(name):
    """What to write instead, of a name in CamelCase."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).replace("_", " ").lower()
    matches = [(rule.search(split), instead) for rule, instead in RULES]
    return [instead for match, instead in matches if match and not THERE_IS_NO.match(match.group(0))]


def find_words(path, text):
    """[(line, found in lower case, instead)] of one file."""
    if str(path).startswith(EXCLUDED):
        return []
    if path == PurePosixPath("CONTRIBUTING.md"):
        text = QUOTED.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    joined = LINE_BREAK.sub(blank, text).replace("_", " ").lower()  # offsets stay
    found = [(line_of(text, m.start()), " ".join(m.group(0).split()), instead)
             for rule, instead in RULES for m in rule.finditer(joined)
             if not THERE_IS_NO.match(m.group(0)) and text[m.start():m.end()] not in OTHERS]
    for name in CAMEL.finditer(text):
        found += [(line_of(text, name.start()), name.group(0), instead) for instead in words_of_name(name.group(0))]
    return sorted(set(found))

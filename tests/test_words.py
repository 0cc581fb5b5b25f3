"""Plain English in the source: phrases that house style replaces by common words.

Pages have a test of their own in `test_pages.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

UNITS = (
    "cell|class|cluster|cycle|file|fit|image|iteration|line|mode|"
    "row|run|sample|second|step|sweep|view"
)

# What is looked for, and what to write.
ODD = {
    r"\banew\b": "again, from scratch",
    r"\bmend(s|ed)?\b": "fix",
    r"\b(is|are) none\b(?=[.,:;]|$)": "'has no …', 'unknown …', 'is not supported'",
    r"\bhas not\b(?=[.,:;]|$)": "has no …",
    rf"\b([Oo]ne|[Aa]n?|[Tt]wo|\d+) \w+ an? ({UNITS})\b": "per",
    r"\b[Ss]o many\b": "the number",
    r"\bsuch a thing\b": "the name of the thing",
    r"\b[Tt]he latter\b": "the name of the thing",
    r"\bthat of those\b": "the name of the thing",
    r'"""What\b(?! is)': "a noun, or a verb such as 'Return'",
}


def test_words_are_plain():
    wrong = []
    for page in sorted((ROOT / "src").rglob("*.py")):
        name = page.relative_to(ROOT).as_posix()
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            for pattern, better in ODD.items():
                if match := re.search(pattern, line):
                    wrong.append(f"{name}:{number}: {match[0]!r}: write {better}")
    assert wrong == [], "\n".join(wrong)

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

# Files that are being rewritten; a file leaves the list when its words are plain.
ALLOWED: set[str] = {
    "src/tuckermix/_callbacks.py",
    "src/tuckermix/_files.py",
    "src/tuckermix/_hdf5_child.py",
    "src/tuckermix/_names.py",
    "src/tuckermix/_records.py",
    "src/tuckermix/_resources.py",
    "src/tuckermix/_stored.py",
    "src/tuckermix/_validation.py",
    "src/tuckermix/cli/_app.py",
    "src/tuckermix/cli/_features.py",
    "src/tuckermix/cli/_results.py",
    "src/tuckermix/cli/_unfinished.py",
    "src/tuckermix/cli/cluster.py",
    "src/tuckermix/clustering.py",
    "src/tuckermix/decomposition/alternating.py",
    "src/tuckermix/decomposition/fit.py",
    "src/tuckermix/decomposition/joint.py",
    "src/tuckermix/decomposition/missing.py",
    "src/tuckermix/decomposition/result.py",
    "src/tuckermix/features/_input.py",
    "src/tuckermix/features/scattering.py",
    "src/tuckermix/labels/graph.py",
    "src/tuckermix/labels/labellers.py",
    "src/tuckermix/labels/outliers.py",
    "src/tuckermix/manifolds/metric.py",
    "src/tuckermix/manifolds/pymanopt.py",
    "src/tuckermix/model.py",
    "src/tuckermix/numerics/linalg.py",
    "src/tuckermix/numerics/points.py",
    "src/tuckermix/objectives/membership.py",
    "src/tuckermix/objectives/tucker.py",
    "src/tuckermix/persistence.py",
    "src/tuckermix/report/_content.py",
    "src/tuckermix/report/_images.py",
    "src/tuckermix/report/_write.py",
    "src/tuckermix/selection/auto.py",
    "src/tuckermix/selection/multiview.py",
    "src/tuckermix/selection/record.py",
    "src/tuckermix/selection/resampling.py",
    "src/tuckermix/selection/search.py",
    "src/tuckermix/selection/views.py",
    "src/tuckermix/solvers/_trust_region.py",
    "src/tuckermix/sources/dask.py",
    "src/tuckermix/sources/source.py",
    "src/tuckermix/summary.py",
}


def test_words_are_plain():
    wrong = []
    for page in sorted((ROOT / "src").rglob("*.py")):
        name = page.relative_to(ROOT).as_posix()
        if name in ALLOWED:
            continue
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            for pattern, better in ODD.items():
                if match := re.search(pattern, line):
                    wrong.append(f"{name}:{number}: {match[0]!r}: write {better}")
    assert wrong == [], "\n".join(wrong)

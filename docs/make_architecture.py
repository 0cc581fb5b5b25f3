"""Draw `_static/architecture.svg`: the packages in the order in which data pass through them.

Run ``python docs/make_architecture.py`` after a change of the layout.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, ROW, BOX, TOP = 880, 84, 52, 30

ROWS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("read", (("datasets", "files, generators → X"), ("features", "X → other N-way features"))),
    ("reduce", (("sources", "blocks of samples, and the sums over them"),)),
    (
        "sweep",
        (
            ("decomposition", "ranks, start, solvers → factors, Q, core"),
            ("manifolds · objectives · solvers", "the trust region beside the closed form"),
        ),
    ),
    (
        "place, label",
        (
            ("memberships", "which simplex → mixing weights"),
            ("model", "place, weigh, label, rebuild"),
            ("labels", "points or weights → labeller"),
        ),
    ),
    (
        "ask",
        (
            ("clustering", "TuckerClustering"),
            ("baselines", "methods to compare with"),
            ("persistence", "save, load"),
        ),
    ),
    (
        "judge, show",
        (
            ("metrics · summary", "scores, figures of a fit"),
            ("experiments", "tables of the paper"),
            ("plots · report · cli", "pictures, pages, commands"),
        ),
    ),
)

STYLE = """
text { font-family: system-ui, sans-serif; fill: #1a1a1a }
.name { font-size: 15px; font-weight: 600 } .job, .stage { font-size: 12px }
.stage { fill: #555; font-style: italic } rect { fill: #eef3f8; stroke: #33658a; rx: 6px }
.side { fill: #f6f1e7; stroke: #8a6d33 } line { stroke: #33658a; stroke-width: 2 }
.sheet { fill: #ffffff; stroke: none }
"""


def box(x: float, y: float, width: float, height: float, name: str, job: str, kind: str) -> str:
    """Return a labelled box."""
    middle = x + width / 2
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        f'<text class="name" x="{middle:g}" y="{y + height / 2 - 5:g}" text-anchor="middle">'
        f"{escape(name)}</text>"
        f'<text class="job" x="{middle:g}" y="{y + height / 2 + 14:g}" text-anchor="middle">'
        f"{escape(job)}</text>"
    )


def picture() -> str:
    """Return the drawing as SVG."""
    left, right, gap = 100, WIDTH - 160, 14
    height = TOP + ROW * len(ROWS)
    parts = [f'<rect class="sheet" width="{WIDTH}" height="{height}"/>']
    for number, (stage, boxes) in enumerate(ROWS):
        y = TOP + ROW * number
        parts.append(f'<text class="stage" x="8" y="{y + BOX / 2 + 4:g}">{escape(stage)}</text>')
        width = (right - left - gap * (len(boxes) - 1)) / len(boxes)
        for place, (name, job) in enumerate(boxes):
            parts.append(box(left + place * (width + gap), y, width, BOX, name, job, "main"))
        if number + 1 < len(ROWS):
            middle = (left + right) / 2
            parts.append(
                f'<line x1="{middle:g}" x2="{middle:g}" y1="{y + BOX + 2}" y2="{y + ROW - 6}" '
                'marker-end="url(#tip)"/>'
            )
    tall = ROW * (len(ROWS) - 1) + BOX
    parts.append(box(right + 20, TOP, 130, tall, "numerics", "tensors, matrices,", "side"))
    parts.append(
        f'<text class="job" x="{right + 85}" y="{TOP + tall / 2 + 30:g}" text-anchor="middle">'
        "points, simplices</text>"
    )
    tip = (
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#33658a"/></marker></defs>'
    )
    title = "The packages of tuckermix in the order in which data pass through them"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" role="img" aria-label="{title}"><title>{title}</title>'
        f"<style>{STYLE}</style>{tip}{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    target = Path(__file__).parent / "_static" / "architecture.svg"
    target.write_text(picture(), encoding="utf-8")

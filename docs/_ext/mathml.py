"""Render formulas as MathML, which browsers show by themselves.

The usual renderer loads a script from another host when a page is viewed. With this one the built
pages are complete, and can be read without a network.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

# LaTeX commands that docutils does not know, and what it knows instead.
SYNONYMS = {"dots": "ldots", "dotsc": "ldots", "dotsb": "cdots"}
COMMAND = re.compile(r"\\(" + "|".join(SYNONYMS) + r")(?![A-Za-z])")

# Browsers choose the size of sums and fractions by themselves.
STYLES = re.compile(r"\\(text|display)style\s*")

# LaTeX reads \frac12 as one half; docutils would read it as twelve over whatever follows.
DIGITS = re.compile(r"(\\[dt]?frac)\s*(\d)\s*(\d)")


def _convert(node: nodes.Node, as_block: bool) -> str:
    """Return the MathML of a formula, or its LaTeX, with a warning, where that is not possible."""
    latex = COMMAND.sub(lambda match: "\\" + SYNONYMS[match[1]], node.astext())
    latex = STYLES.sub("", latex)
    latex = DIGITS.sub(r"\1{\2}{\3}", latex)
    if as_block and ("\\\\" in latex or "&" in latex) and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    try:
        markup = latex2mathml.tex2mathml(latex, as_block=as_block)
    except latex2mathml.MathError as error:
        logger.warning("formula: %s", error, location=node)
        return f"<code>{escape(latex)}</code>"
    # Without a font made for mathematics, Chromium sets marked accents into the letter.
    return markup.replace(' accent="true"', "")


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write a formula in running text."""
    self.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(_convert(node, as_block=True))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Settings of the documentation. Build it with `make docs`; every warning is an error."""

import re
import sys
from pathlib import Path

import tuckermix

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "tuckermix"
author = "The tuckermix developers"
copyright = author
version = release = tuckermix.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "mathml",  # formulas that need no script from elsewhere
    "sphinx_gallery.gen_gallery",  # runs the tutorials
]
html_math_renderer = "mathml"
# The table of the front page is part of other pages.
exclude_patterns = ["_build", "_ext", "_templates", "sg_execution_times.rst", "results/front.md"]
templates_path = ["_templates"]
root_doc = "index"
default_role = "code"
nitpicky = True

# The reference follows `__all__` of each public module, re-exported names included.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # types and shapes are in the docstrings
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # names of methods would be clipped beside the text
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
nitpick_ignore_regex = [("py:.*", r"(sklearn|numpy|scipy|dask|torch|pymanopt|matplotlib)\..*")]

sphinx_gallery_conf = {
    "examples_dirs": "../examples/tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "reading_order.ReadingOrder",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 1e9,  # how long this machine took is of no use to the reader
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
}
html_theme = "pydata_sphinx_theme"
html_title = "tuckermix"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
# These have no pages beside or below them to list.
html_sidebars = {page: [] for page in ("index", "getting_started")}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}


# What estimators inherit from scikit-learn is described there, except for these.
INHERITED = {"fit_predict", "fit_transform"}


def skip_inherited(app, what, name, obj, skip, options):
    """Leave out members that come from scikit-learn."""
    foreign = str(getattr(obj, "__module__", "")).startswith("sklearn.")
    return True if foreign and name not in INHERITED else None


def escape_types(app, what, name, obj, options, lines):
    """Keep fitted names such as ``n_components_`` in a type field from being read as links."""
    for i, line in enumerate(lines):
        field = re.fullmatch(r"(\s*[\w*, ]+ : )(.*)", line)
        if field:
            lines[i] = field[1] + re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", field[2])


def setup(app):
    """Connect the hooks of this file."""
    app.connect("autodoc-process-docstring", escape_types, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", skip_inherited)

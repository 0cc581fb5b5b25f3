"""Settings of the documentation. Build it with `make docs`; every warning is an error."""

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
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
root_doc = "index"
default_role = "code"
nitpicky = True

# The reference follows `__all__` of each public module, re-exported names included.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # types and shapes stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "tuckermix"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_sidebars = {"getting_started": [], "notation": [], "changelog": [], "contributing": []}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}

suppress_warnings = ["toc.not_readable"]

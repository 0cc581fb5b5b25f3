"""The report: one HTML file that shows a clustering to a person.

It needs no network, no server and no other file. Its numbers are made in `_content`, its pictures
in `_images` and `_svg`, and its looks come from the templates beside this file.
"""

from tuckermix.report._write import render_report, require_packages, write_report

__all__ = ["render_report", "require_packages", "write_report"]

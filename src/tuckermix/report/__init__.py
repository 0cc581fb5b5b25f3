"""The report: one HTML file to look at a clustering and to correct it.

It needs no network, no server and no other file. What it shows of samples is gathered in
`_samples` and `_images`, how they were clustered in `_content` and `_svg`; its looks and its script
come from the templates beside this file.
"""

from tuckermix.report._images import address, encoded
from tuckermix.report._samples import page_levels, page_marks
from tuckermix.report._write import (
    Report,
    is_file,
    render_report,
    require_packages,
    write_report,
)

__all__ = [
    "Report",
    "address",
    "encoded",
    "is_file",
    "page_levels",
    "page_marks",
    "render_report",
    "require_packages",
    "write_report",
]

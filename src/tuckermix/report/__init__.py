"""The report: one HTML file to look at a clustering and to correct it.

It needs no network, no server and no other file. What it shows of samples is gathered in
`_samples` and `_images`, how they were clustered in `_content`; its looks and its script come from
the templates beside this file.
"""

from tuckermix.report._content import facts
from tuckermix.report._images import Pictures, address, encoded, small_pictures
from tuckermix.report._samples import page_levels, page_marks
from tuckermix.report._write import (
    Report,
    contact_sheet,
    files_below,
    render_report,
    require_packages,
    write_report,
)

__all__ = [
    "Pictures",
    "Report",
    "address",
    "contact_sheet",
    "encoded",
    "facts",
    "files_below",
    "page_levels",
    "page_marks",
    "render_report",
    "require_packages",
    "small_pictures",
    "write_report",
]

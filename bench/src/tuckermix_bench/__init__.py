"""The paper's tables and figures and what goes beyond them, computed and shown.

:func:`reproduce` computes cells in parallel processes and stores one record per cell and run in a
file of JSON lines; :func:`show` renders what is stored. A :class:`Method` or a
:class:`DatasetEntry` of one's own joins by :func:`register_method` and :func:`register_dataset`,
and an :class:`Experiment` of one's own is run in the same way as the paper's. :func:`benchmark`
runs a method on the draws of the tables and ranks it among the published columns.
"""

from tuckermix_bench.draws import (
    DATASETS,
    SEED,
    DatasetEntry,
    Draw,
    draw,
    draw_indices,
    register_dataset,
)
from tuckermix_bench.methods import METHODS, Method, register_method
from tuckermix_bench.places import Benchmark, benchmark, own_method, places_csv
from tuckermix_bench.render import Shown, show
from tuckermix_bench.runner import (
    DEFAULT_DB,
    Cost,
    Progress,
    RunReport,
    import_records,
    log_progress,
    plan,
    published_records,
    reproduce,
)
from tuckermix_bench.store import RunRecord, Store
from tuckermix_bench.summaries import Place, TableSummary, summarize
from tuckermix_bench.tables import (
    EXPERIMENTS,
    FIGURES,
    PAPER_SCORES,
    Experiment,
    Figure,
    PaperScore,
    Row,
    paper_score,
)

__all__ = [
    "DATASETS",
    "DEFAULT_DB",
    "EXPERIMENTS",
    "FIGURES",
    "METHODS",
    "PAPER_SCORES",
    "SEED",
    "Benchmark",
    "Cost",
    "DatasetEntry",
    "Draw",
    "Experiment",
    "Figure",
    "Method",
    "PaperScore",
    "Place",
    "Progress",
    "Row",
    "RunRecord",
    "RunReport",
    "Shown",
    "Store",
    "TableSummary",
    "benchmark",
    "draw",
    "draw_indices",
    "import_records",
    "log_progress",
    "own_method",
    "paper_score",
    "places_csv",
    "plan",
    "published_records",
    "register_dataset",
    "register_method",
    "reproduce",
    "show",
    "summarize",
]

"""The paper's tables and figures and what goes beyond them, computed and shown.

:func:`reproduce` computes cells in parallel processes and stores one record a cell and run in an
SQLite file; :func:`show` renders what is stored. A :class:`Method` or a :class:`DatasetEntry` of
one's own joins by :func:`register_method` and :func:`register_dataset`, and an :class:`Experiment`
of one's own is run in the same way as the paper's. :func:`benchmark` runs a method on the draws of
the tables and tells its place among the published columns.
"""

from tuckermix.experiments.bench import (
    Benchmark,
    Place,
    benchmark,
    own_method,
    places_csv,
    published_records,
)
from tuckermix.experiments.draws import (
    DATASETS,
    SEED,
    DatasetEntry,
    Draw,
    draw,
    draw_indices,
    register_dataset,
)
from tuckermix.experiments.methods import METHODS, Method, register_method
from tuckermix.experiments.render import Shown, show
from tuckermix.experiments.runner import (
    DEFAULT_DB,
    Cost,
    Progress,
    RunReport,
    log_progress,
    plan,
    reproduce,
)
from tuckermix.experiments.store import RunRecord, Store, import_records
from tuckermix.experiments.summaries import TableSummary, summarize
from tuckermix.experiments.tables import (
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

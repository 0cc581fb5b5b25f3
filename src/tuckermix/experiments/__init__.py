"""The paper's tables and figures, computed and shown.

:func:`reproduce` computes cells in parallel processes and stores one record a cell and run in an
SQLite file; :func:`show` renders what is stored. A :class:`Method` or a :class:`DatasetEntry` of
one's own joins by :func:`register_method` and :func:`register_dataset`, and an :class:`Experiment`
of one's own is run in the same way as the paper's.
"""

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
from tuckermix.experiments.paper import PAPER_SCORES, PaperScore, paper_score
from tuckermix.experiments.progress import Progress, RunReport, log_progress
from tuckermix.experiments.reproducing import DEFAULT_DB, reproduce
from tuckermix.experiments.showing import Shown, show
from tuckermix.experiments.specs import Experiment, Figure, Row
from tuckermix.experiments.store import RunRecord, Store
from tuckermix.experiments.summaries import TableSummary, summarize
from tuckermix.experiments.tables import EXPERIMENTS, FIGURES

__all__ = [
    "DATASETS",
    "DEFAULT_DB",
    "EXPERIMENTS",
    "FIGURES",
    "METHODS",
    "PAPER_SCORES",
    "SEED",
    "DatasetEntry",
    "Draw",
    "Experiment",
    "Figure",
    "Method",
    "PaperScore",
    "Progress",
    "Row",
    "RunRecord",
    "RunReport",
    "Shown",
    "Store",
    "TableSummary",
    "draw",
    "draw_indices",
    "log_progress",
    "paper_score",
    "register_dataset",
    "register_method",
    "reproduce",
    "show",
    "summarize",
]

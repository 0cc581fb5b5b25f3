"""The search: a coarse pass over the numbers of clusters, finer ones, and a last word by many."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tuckermix.selection.grid import coarse_grid, values_between
from tuckermix.selection.record import Selection, Trial, best_views, by_merit, summarize
from tuckermix.selection.resampling import Resampler

__all__ = ["Progress", "choose"]

LOGGER = logging.getLogger(__name__)

FEW, MANY = 4, 20
"""Subsamples for a first look, and for those that lead: the stability of one subsample varies by
some hundredths, as much as numbers of clusters next to each other differ."""

FALLEN, IN_A_ROW = 0.85, 4
"""The first pass ends when the score has been below this part of the best for so many numbers in a
row: the score rises to the best number and falls behind it."""

CLOSE = 0.93
"""Numbers whose score is at least this part of the best lead, and are looked at again."""

LEADERS = 6
"""The most numbers of clusters that are looked at again."""

RIVAL = 0.05
"""Views whose stability is that close to the best are looked at again."""

RIVALS = 3
"""The most views that are looked at again for one number of clusters."""

ROUNDS = 4
"""How often values between neighbours are tried: each round divides the gap by five."""

FEATURES, COARSE, FINE = 0.1, 0.6, 0.75
"""How far the work has come after the features, the first pass and the finer ones, roughly."""

Progress = Callable[[float, str], None]
"""Told how far the work has come, from 0 to 1, and what is going on."""


def choose(resampler: Resampler, n_clusters: int | None, progress: Progress) -> Selection:
    """Choose the view and, where it is open, the number of clusters.

    Parameters
    ----------
    resampler : Resampler
        What tries a number on a candidate.
    n_clusters : int or None
        The number of clusters; None where it is open.
    progress : callable
        Called with the share of the work that is done and what is going on.

    Returns
    -------
    selection : Selection
        What was compared, and what was chosen.
    """
    return _Search(resampler, progress).run(n_clusters)


class _Search:
    """The state of a search: all trials so far, by number and view."""

    def __init__(self, resampler: Resampler, progress: Progress):
        self.resampler, self.progress = resampler, progress
        self.names = list(resampler.candidates)
        self.trials: dict[tuple[int, str], Trial] = {}

    def run(self, n_clusters: int | None) -> Selection:
        grid = coarse_grid(self.resampler.n_samples) if n_clusters is None else [n_clusters]
        enough = max(grid[-1], 1) < self.resampler.n_samples
        for place, name in enumerate(self.names if enough else []):
            self.progress(FEATURES * place / len(self.names), f"features of {name}")
            self.resampler.prepare(name)
        if enough:
            self._coarse(grid)
        if not self.trials:  # as many clusters as samples, or a graph of more parts than clusters
            first = self.names[0]
            return Selection([Trial(grid[-1], first, 0.0, 0.0, 0)], grid[-1], first)
        if n_clusters is None:
            self._finer()
        self._last_word()
        labels = {
            trial.n_clusters: self.resampler.labels(trial.n_clusters, trial.view)
            for trial in self._curve()
        }
        return summarize(list(self.trials.values()), self.names, labels, self.resampler.n_samples)

    def _curve(self) -> list[Trial]:
        return best_views(list(self.trials.values()))

    def _best(self) -> Trial:
        return by_merit(self._curve())[0]

    def _try(self, n_clusters: int, n_subsamples: int, done: float) -> Trial | None:
        """Try a number of clusters in all views; return the most stable."""
        self.progress(done, f"{n_clusters} clusters")
        found = []
        for name in self.names:
            trial = self.resampler.trial(n_clusters, name, n_subsamples)
            if trial is not None:
                self.trials[n_clusters, name] = trial
                found.append(trial)
        best = max(found, key=lambda trial: trial.stability, default=None)
        if best is not None:
            LOGGER.debug(
                "%d clusters: %s, stability %.3f, modularity %.3f",
                *(n_clusters, best.view, best.stability, best.modularity),
            )
        return best

    def _coarse(self, grid: list[int]) -> None:
        best, fallen, failed = 0.0, 0, 0
        for place, n_clusters in enumerate(grid):
            share = FEATURES + (COARSE - FEATURES) * place / len(grid)
            trial = self._try(n_clusters, FEW, share)
            if trial is None:
                failed = n_clusters
                continue
            # The graph has more parts than `failed`: their number may be the answer.
            for between in range(failed + 1, n_clusters) if failed else ():
                self._try(between, FEW, share)
            failed = 0
            best = max(best, trial.score)
            fallen = fallen + 1 if trial.score < FALLEN * best else 0
            if fallen == IN_A_ROW:
                return

    def _finer(self) -> None:
        for turn in range(ROUNDS):
            new = values_between(
                sorted({number for number, _ in self.trials}), self._best().n_clusters
            )
            if not new:
                return
            for place, n_clusters in enumerate(new):
                share = (turn + place / len(new)) / ROUNDS
                self._try(n_clusters, FEW, COARSE + (FINE - COARSE) * share)

    def _last_word(self) -> None:
        """Compare those that lead with more subsamples."""
        best = self._best()
        leaders = sorted(self._curve(), key=lambda trial: -trial.score)
        leaders = [trial for trial in leaders if trial.score >= CLOSE * best.score][:LEADERS]
        if len(leaders) == 1 and len(self.names) == 1:
            return
        for place, leader in enumerate(leaders):
            share = FINE + (1.0 - FINE) * place / len(leaders)
            self.progress(share, f"{leader.n_clusters} clusters again")
            rivals = [
                trial for (number, _), trial in self.trials.items() if number == leader.n_clusters
            ]
            rivals = sorted(rivals, key=lambda trial: -trial.stability)[:RIVALS]
            for rival in rivals:
                if rival.stability < leader.stability - RIVAL:
                    continue
                again = self.resampler.trial(rival.n_clusters, rival.view, MANY)
                assert again is not None
                self.trials[rival.n_clusters, rival.view] = again

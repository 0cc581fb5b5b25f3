"""The search: a coarse pass over the numbers of clusters, finer ones, and a last word by many."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from tuckermix.selection.grid import coarse_grid, values_between
from tuckermix.selection.record import Selection, Trial, best_views, by_merit, summarize
from tuckermix.selection.resampling import Resampler

__all__ = ["Progress", "choose"]

LOGGER = logging.getLogger(__name__)

FIRST, FEW, MANY = 2, 4, 20
"""Subsamples for a first look, a second one, and at most for those that lead: the stability of one
subsample varies by some hundredths, as much as numbers of clusters next to each other differ."""

HOPELESS = 0.1
"""Views that are that far behind after the first look get no second one, in units of stability."""

ROUND = 4
"""The number of further subsamples after which those that lead are compared again."""

BEHIND = 3.0
"""Standard errors of the difference, over the same subsamples, at which one is behind for good."""

FALLEN, IN_A_ROW = 0.85, 4
"""The first pass ends when stability times modularity has been below this part of the best for so
many numbers in a row: it rises to the best number and falls behind it. The score does not rise as
much, and two clear groups among twenty persons would end the pass before it comes to persons."""

CLOSE = 0.93
"""Numbers whose score is at least this part of the best lead, and are looked at again."""

LEADERS = 6
"""The most numbers of clusters that are looked at again."""

RIVAL = 0.05
"""Views that are that close to the best are looked at again, in units of stability."""

RIVALS = 3
"""The most views that are looked at again for one number of clusters."""

THE_SAME = 0.01
"""Differences below that make no difference: another seed moves stabilities by as much."""

ROUNDS = 4
"""How often values between neighbours are tried: each round divides the gap by five."""

PASSES = 3
"""How often numbers beside the best are tried, and those that lead compared again."""

PEAKS, BESIDE = 3, 0.98
"""Values beside this many numbers are tried, where they come this near to the best: few subsamples
do not tell them apart, and the best of all may lie beside any of them."""

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
        self.resampler, self._told, self._share = resampler, progress, 0.0
        self.names = list(resampler.candidates)
        self.trials: dict[tuple[int, str], Trial] = {}

    def progress(self, share: float, doing: str) -> None:
        """Tell what is going on; another pass does not turn back the share that is done."""
        self._share = max(share, self._share)
        self._told(self._share, doing)

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
        for _ in range(1 if n_clusters is not None else PASSES):
            if n_clusters is None:
                self._finer()
            self._last_word()
            # More subsamples may show another number to be the best, beside which none was tried.
            tried = sorted({number for number, _ in self.trials})
            if not values_between(tried, self._best().n_clusters):
                break
        labels = {
            trial.n_clusters: self.resampler.labels(trial.n_clusters, trial.view)
            for trial in self._curve()
        }
        return summarize(list(self.trials.values()), self.names, labels, self.resampler.n_samples)

    def _curve(self) -> list[Trial]:
        return best_views(list(self.trials.values()))

    def _best(self) -> Trial:
        return by_merit(self._curve())[0]

    def _try(self, n_clusters: int, done: float) -> Trial | None:
        """Try a number of clusters in all views; return the best."""
        self.progress(done, f"{n_clusters} clusters")
        found: dict[str, Trial] = {}
        for name in self.names:
            trial = self.resampler.trial(n_clusters, name, FIRST)
            if trial is not None:
                found[name] = trial
        # The best of a second look may turn out to be worse than one that had none.
        best: Trial | None = None
        while found and (best is None or best.n_subsamples < FEW):
            lead = max(found.values(), key=lambda trial: trial.worth)
            for name, trial in found.items():
                if trial.n_subsamples < FEW and is_near(trial, lead, HOPELESS):
                    again = self.resampler.trial(n_clusters, name, FEW)
                    assert again is not None
                    found[name] = again
            best = max(found.values(), key=lambda trial: trial.worth)
        self.trials.update({(n_clusters, name): trial for name, trial in found.items()})
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
            trial = self._try(n_clusters, share)
            if trial is None:
                failed = n_clusters
                continue
            # The graph has more parts than `failed`: their number may be the answer.
            for between in range(failed + 1, n_clusters) if failed else ():
                self._try(between, share)
            failed = 0
            product = trial.stability * trial.modularity
            best = max(best, product)
            fallen = fallen + 1 if product < FALLEN * best else 0
            if fallen == IN_A_ROW:
                return

    def _finer(self) -> None:
        for turn in range(ROUNDS):
            tried = sorted({number for number, _ in self.trials})
            curve = sorted(self._curve(), key=lambda trial: -trial.score)[:PEAKS]
            peaks = [trial for trial in curve if trial.score >= BESIDE * curve[0].score]
            new: set[int] = set()
            for trial in (self._best(), *peaks):
                new.update(values_between(tried, trial.n_clusters))
            if not new:
                return
            for place, n_clusters in enumerate(sorted(new)):
                share = (turn + place / len(new)) / ROUNDS
                self._try(n_clusters, COARSE + (FINE - COARSE) * share)

    def _last_word(self) -> None:
        """Compare those that lead with more subsamples, until one is ahead."""
        best = self._best()
        leaders = sorted(self._curve(), key=lambda trial: -trial.score)
        leaders = [trial for trial in leaders if trial.score >= CLOSE * best.score][:LEADERS]
        if not leaders or (len(leaders) == 1 and len(self.names) == 1):  # scores may be negative
            return
        race = {trial.n_clusters: self._rivals(trial) for trial in leaders}
        for count in range(FEW + ROUND, MANY + 1, ROUND):
            share = FINE + (1.0 - FINE) * (count - FEW - ROUND) / (MANY - FEW)
            for n_clusters, views in race.items():
                self.progress(share, f"{n_clusters} clusters again")
                for view in views:
                    again = self.resampler.trial(n_clusters, view, count)
                    assert again is not None
                    self.trials[n_clusters, view] = again
            race = self._ahead(race)
            if sum(len(views) for views in race.values()) == 1:
                return

    def _rivals(self, leader: Trial) -> list[str]:
        """Return the views that come near the best one for its number of clusters."""
        others = [
            trial for (number, _), trial in self.trials.items() if number == leader.n_clusters
        ]
        others = sorted(others, key=lambda trial: -trial.worth)[:RIVALS]
        return [trial.view for trial in others if is_near(trial, leader, RIVAL)]

    def _worths(self, n_clusters: int, view: str, first: str) -> np.ndarray:
        """Return the worth of a view for each subsample, in units of the stability of another."""
        weight, unit = (self.trials[n_clusters, name].weight for name in (view, first))
        return (weight / unit if unit > 0 else 1.0) * self.resampler.agreements(n_clusters, view)

    def _ahead(self, race: dict[int, list[str]]) -> dict[int, list[str]]:
        """Leave out views that are behind for good, then numbers of clusters that are."""
        best: dict[int, str] = {}
        for n_clusters, views in race.items():
            first = max(views, key=lambda view: self.trials[n_clusters, view].worth)
            lead = self._worths(n_clusters, first, first)
            race[n_clusters] = [
                view
                for view in views
                if view == first or not is_behind(self._worths(n_clusters, view, first), lead)
            ]
            best[n_clusters] = first

        def scores(n_clusters: int) -> np.ndarray:
            trial = self.trials[n_clusters, best[n_clusters]]
            return trial.quality * self.resampler.agreements(n_clusters, trial.view)

        curve = [self.trials[item] for item in best.items()]
        chosen = by_merit(curve)[0]
        highest = max(curve, key=lambda trial: trial.score)
        return {
            n_clusters: views
            for n_clusters, views in race.items()
            if n_clusters in (chosen.n_clusters, highest.n_clusters)
            or not is_behind(scores(n_clusters), scores(highest.n_clusters))
        }


def is_near(trial: Trial, leader: Trial, margin: float) -> bool:
    """Tell whether a view comes that near to the best one, in units of the stability of that."""
    return trial.worth >= leader.worth - margin * leader.weight


def is_behind(values: np.ndarray, lead: np.ndarray) -> bool:
    """Tell whether values for subsamples are below others for the same ones beyond doubt.

    Those that are the same beyond doubt are behind too: more subsamples would decide by a hair.
    Where one has been tried on more subsamples, those count that both have: they come first.
    """
    both = min(len(lead), len(values))
    gaps = lead[:both] - values[:both]
    gap, doubt = float(np.mean(gaps)), BEHIND * float(np.std(gaps, ddof=1)) / len(gaps) ** 0.5
    return gap >= doubt or gap + doubt <= THE_SAME

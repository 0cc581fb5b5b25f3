"""The search for the number of clusters and the view: scan, compare, race, and a test for noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tuckermix._estimators import Settings
from tuckermix._threads import in_threads, one_blas_thread
from tuckermix.selection.record import SAME, Selection, Trial, best_views, by_merit, summarize
from tuckermix.selection.resampling import Resampler


@dataclass(frozen=True)
class SearchSettings(Settings):
    """How far and how closely is searched.

    Attributes
    ----------
    per_cluster : int
        The least samples for each cluster: fewer say nothing of what is common to them.
    step : float
        The ratio of neighbouring numbers in the scan.
    wide : int
        Each graph for more clusters than this is cut only in the better half of the views that were
        cut for half as many, and on one subsample: the mean over many clusters varies little.
    first, few, many : int
        Subsamples for a first look, for a comparison, and at most for those that lead. The
        stability of one subsample varies by some hundredths, as much as neighbouring numbers
        differ.
    close : float
        Numbers, and views of a given number, whose first score is at least this part of the best
        are compared.
    lead : float
        Numbers with this part of the best score, and views of one number with this part of its best
        worth, race after a comparison.
    fine : float
        Numbers beside those that lead are tried until they differ by less than this factor; beside
        the best ones, until none is left: the score of a number may be far above those around it.
    numbers, views : int
        The most numbers that race, and the most views of one number.
    doubt : float
        Standard errors of the difference, over the same subsamples, at which one is behind for
        good.
    clouds : tuple of (int, float)
        Normal clouds in the rounds of the test for noise, and by how many times `apart` a score
        must exceed theirs for a round to be the last: of a few the spread is not well known.
    apart : float
        Standard deviations by which a score exceeds those of clouds where there are clusters. The
        best of many numbers and views is more than that above in one of twenty clouds.
    threads : int
        The most threads that cut graphs. Steps are short, and Python lets one thread at a time
        begin the next: on 16 processors as many threads take half as long again as three.
    """

    per_cluster: int = 4
    step: float = 1.4
    wide: int = 16
    first: int = 2
    few: int = 4
    many: int = 12
    close: float = 0.85
    lead: float = 0.95
    fine: float = 1.15
    numbers: int = 6
    views: int = 3
    doubt: float = 3.0
    clouds: tuple[tuple[int, float], ...] = ((4, 6.0), (8, 2.0), (32, 0.0))
    apart: float = 3.0
    threads: int = 3


Progress = Callable[[float, str], None]
"""Told how far the work has come, from 0 to 1, and what is going on."""


def numbers_to_scan(n_samples: int) -> list[int]:
    """Return the numbers of clusters of the scan, from 2 to a quarter of the samples."""
    use = SearchSettings.current()
    most = n_samples // use.per_cluster
    grid = list(range(2, min(4, most) + 1))
    while grid and grid[-1] < most and grid[-1] >= 4:
        grid.append(min(round(grid[-1] * use.step), most))
    return grid


def at_the_end(selection: Selection) -> bool:
    """Tell whether the number found is so near to the largest tried that more may be there."""
    use = SearchSettings.current()
    return selection.n_clusters * use.per_cluster * use.step >= selection.n_samples


def choose(resampler: Resampler, n_clusters: int | None, progress: Progress) -> Selection:
    """Choose the view and, where it is open, the number of clusters.

    1. *Scan.* The numbers 2, 3, 4, … in steps of 1.4 to a quarter of the samples, in all views, by
       cuts without any chance, on two subsamples; for many clusters in the better views, on one.
    2. *Compare.* Numbers with at least 0.85 of the best score, each in its three best views, by the
       cuts of a fit on four subsamples; then numbers beside those that lead, each time halfway to
       the next one tried.
    3. *Race.* Those with 0.95 of the best score get more subsamples, until they are behind by three
       standard errors, or as good within 0.01, or have had 12. If the winner has neighbours that
       were not tried, these are compared.
    4. *Noise?* There is one cluster where the winner does not score more than the same number in
       normal clouds with the same directions.

    A number that is given is compared in all views, and the best of these race.

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
        self.use = SearchSettings.current()
        self.resampler, self._told, self._share = resampler, progress, 0.0
        self.names = list(resampler.candidates)
        # Features of images take most of the time, and the samples themselves none.
        looks = [look for some in resampler.looks.values() for look in some or []]
        self._ready = 0.6 if any(look.transformers is not None for look in looks) else 0.1
        self.scanned: dict[tuple[int, str], Trial] = {}
        self.trials: dict[tuple[int, str], Trial] = {}

    def progress(self, share: float, doing: str) -> None:
        """Tell what is going on; another pass does not turn back the share that is done."""
        self._share = max(self._ready + (1 - self._ready) * share, self._share)
        self._told(self._share, doing)

    def run(self, n_clusters: int | None) -> Selection:
        n_samples, first = self.resampler.n_samples, self.names[0]
        numbers = numbers_to_scan(n_samples) if n_clusters is None else [n_clusters]
        if not numbers or numbers[-1] in (1, n_samples):  # there is nothing to choose
            number = numbers[-1] if numbers else 1
            return Selection([Trial(number, first, 0.0, 0.0, 0)], number, first)
        for place, name in enumerate(self.resampler.prepare()):
            self._told(self._ready * place / len(self.names), f"features of {name}")
        return one_blas_thread(self._search, self.use.threads)(numbers, n_clusters)

    def _search(self, numbers: list[int], n_clusters: int | None) -> Selection:
        """Scan, compare and race, as `choose` says."""
        if n_clusters is None:
            self._scan(numbers)
            self._compare_those_that_lead()
        else:
            self.progress(0.1, f"{n_clusters} clusters")
            self._compare_views({n_clusters: self.names})
        if not self.trials:  # a graph of more parts than clusters
            number, first = numbers[-1], self.names[0]
            return Selection([Trial(number, first, 0.0, 0.0, 0)], number, first)
        self._race()
        while n_clusters is None and self._compare_neighbours():
            self._race()
        best = by_merit(self._curve())[0]
        noise = [] if n_clusters is not None else self._clouds(best)
        return self._summary(noise)

    def _scan(self, numbers: list[int]) -> None:
        """Try all numbers, those that share a graph together."""
        rungs: dict[int, list[int]] = {}
        for number in numbers:
            rungs.setdefault(2 ** round(math.log2(number)), []).append(number)
        names, found = self.names, list[Trial]()
        for place, (rung, some) in enumerate(rungs.items()):
            self.progress(0.5 * place / len(rungs), f"{some[0]} to {some[-1]} clusters")
            if rung > self.use.wide and found:
                worths = dict.fromkeys(names, 0.0)
                for trial in found:
                    worths[trial.view] = max(worths[trial.view], trial.worth)
                some_views = max(self.use.views, (len(names) + 1) // 2)
                names = sorted(names, key=lambda name: -worths[name])[:some_views]
            count = self.use.first if rung <= self.use.wide else 1
            found = self.resampler.scan(rung, some, names, count)
            self.scanned.update({(trial.n_clusters, trial.view): trial for trial in found})

    def _every(self) -> list[Trial]:
        """Return all trials; what was compared takes the place of the scan."""
        compared = {number for number, _ in self.trials}
        others = [trial for trial in self.scanned.values() if trial.n_clusters not in compared]
        return [*self.trials.values(), *others]

    def _curve(self) -> list[Trial]:
        """Return the best view of each number."""
        return best_views(self._every())

    def _views(self, n_clusters: int) -> list[str]:
        """Return the views that are best for a number, or for the nearest one that was scanned."""
        known = sorted({number for number, _ in self.scanned})
        nearest = min(known, key=lambda number: abs(math.log(number / n_clusters)))
        found = [trial for (number, _), trial in self.scanned.items() if number == nearest]
        best = sorted(found, key=lambda trial: -trial.worth)[: self.use.views]
        return [trial.view for trial in best]

    def _compare(self, keys: Iterable[tuple[int, str]], count: int) -> list[Trial]:
        found = self.resampler.compare(list(keys), count)
        self.trials.update({(trial.n_clusters, trial.view): trial for trial in found})
        return found

    def _compare_numbers(self, numbers: Iterable[int]) -> None:
        compared = {number for number, _ in self.trials}
        new = [number for number in sorted(numbers) if number not in compared]
        self.progress(0.5, f"{', '.join(str(number) for number in new)} clusters again")
        self._compare_views({number: self._views(number) for number in new})

    def _compare_views(self, views: dict[int, list[str]]) -> None:
        """Compare views of numbers of clusters, and the best of each number again."""
        keys = [(number, view) for number, some in views.items() for view in some]
        found = self._compare(keys, self.use.first)
        best = {trial.n_clusters: trial.worth for trial in best_views(found)}
        near = [trial for trial in found if trial.worth >= self.use.close * best[trial.n_clusters]]
        self._compare([(trial.n_clusters, trial.view) for trial in near], self.use.few)

    def _compare_those_that_lead(self) -> None:
        curve = self._curve()
        if not curve:
            return
        best = max(trial.score for trial in curve)
        wanted = {trial.n_clusters for trial in curve if trial.score >= self.use.close * best}
        wanted.add(by_merit(curve)[0].n_clusters)
        while wanted:
            self._compare_numbers(wanted)
            # The best of all must have been compared.
            first = by_merit(self._curve())[0].n_clusters
            wanted = {first} - {number for number, _ in self.trials}
        while self._compare_neighbours():
            pass

    def _compare_neighbours(self) -> bool:
        """Compare numbers halfway between the best ones and the next; tell whether there were."""
        curve = self._curve()
        tried = [trial.n_clusters for trial in curve]
        order = by_merit(curve)
        use, first, wanted = self.use, order[0].score, set[int]()
        for trial in [some for some in order[: use.numbers] if some.score >= use.lead * first]:
            best = trial.score >= (1 - 2 * SAME) * first
            place = tried.index(trial.n_clusters)
            for other in tried[max(0, place - 1) : place + 2]:
                low, high = sorted((trial.n_clusters, other))
                if best or high >= use.fine * low:
                    wanted.add((low + high) // 2)
        wanted -= set(tried)
        if order[0].n_clusters not in {number for number, _ in self.trials}:
            wanted.add(order[0].n_clusters)
        if wanted:
            self._compare_numbers(wanted)
        return bool(wanted)

    def _race(self) -> None:
        """Compare those that lead with more subsamples, until one is ahead."""
        use = self.use
        compared = best_views(list(self.trials.values()))
        best = by_merit(compared)[0]
        leaders = sorted(compared, key=lambda trial: -trial.score)
        leaders = [trial for trial in leaders if trial.score >= use.lead * best.score]
        race: dict[int, list[str]] = {}
        for trial in leaders[: use.numbers]:
            number = trial.n_clusters
            views = [other for other in self.trials.values() if other.n_clusters == number]
            views = sorted(views, key=lambda other: -other.worth)[: use.views]
            race[number] = [one.view for one in views if one.worth >= use.lead * trial.worth]
        for count in range(2 * use.few, use.many + 1, use.few):
            if sum(len(views) for views in race.values()) <= 1:
                return
            self.progress(
                0.6 + 0.3 * count / use.many,
                f"{', '.join(str(number) for number in race)} clusters again",
            )
            self._compare([(number, view) for number in race for view in race[number]], count)
            race = self._ahead(race)

    def _worths(self, n_clusters: int, view: str, first: str) -> np.ndarray:
        """Return the worth of a view for each subsample, in units of the stability of another."""
        weight, unit = (self.trials[n_clusters, name].weight for name in (view, first))
        return (weight / unit if unit > 0 else 1.0) * self.resampler.agreements(n_clusters, view)

    def _scores(self, trial: Trial) -> np.ndarray:
        return trial.quality * self.resampler.agreements(trial.n_clusters, trial.view)

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
        curve = [self.trials[item] for item in best.items()]
        chosen = by_merit(curve)[0]
        highest = max(curve, key=lambda trial: trial.score)
        return {
            n_clusters: views
            for n_clusters, views in race.items()
            if n_clusters in (chosen.n_clusters, highest.n_clusters)
            or not is_behind(
                self._scores(self.trials[n_clusters, best[n_clusters]]), self._scores(highest)
            )
        }

    def _clouds(self, best: Trial) -> list[float]:
        """Return the scores of normal clouds with the directions of the samples."""
        name, use = best.view, self.use
        if self.resampler.looks[name] is None or best.score <= 0:
            return []
        names = list(dict.fromkeys((name, self.resampler.judge or name)))
        self.progress(0.9, "noise")

        def score(place: int) -> float:
            noise = self.resampler.of_noise(names, place)
            found = noise.compare([(best.n_clusters, name)], use.few)
            return found[0].score if found else 0.0

        scores: list[float] = []
        for count, clear in use.clouds:
            in_threads(score, range(len(scores), count), np.empty(0), scores.append)
            above = _above(best, scores) / use.apart
            if above >= clear or above * clear <= 1.0:
                break
        return scores

    def _summary(self, noise: list[float]) -> Selection:
        curve = self._curve()
        labels = {t.n_clusters: self.resampler.labels(t.n_clusters, t.view) for t in curve}
        compared = {number for number, _ in self.trials}
        chosen = by_merit(curve)[0]
        sure = {
            trial.n_clusters: chance_behind(self._scores(trial), self._scores(chosen))
            for trial in curve
            if trial.n_clusters in compared and trial is not chosen
        }
        one = bool(noise) and _above(chosen, noise) <= self.use.apart
        return summarize(
            self._every(), self.names, labels, self.resampler.n_samples, sure, noise, one=one
        )


def is_behind(values: np.ndarray, lead: np.ndarray) -> bool:
    """Tell whether values for subsamples are below others for the same ones beyond doubt.

    Those that are the same beyond doubt are behind too: more subsamples would decide by a hair.
    Where one has been tried on more subsamples, those count that both have: they come first.
    """
    use = SearchSettings.current()
    gap, error = _gap(values, lead)
    return gap >= use.doubt * error or gap + use.doubt * error <= SAME


def _above(trial: Trial, noise: list[float]) -> float:
    """Return by how many standard deviations a score exceeds those of noise."""
    spread = max(float(np.std(noise, ddof=1)), float(np.finfo(float).eps))
    return (trial.score - float(np.mean(noise))) / spread


def chance_behind(values: np.ndarray, lead: np.ndarray) -> float:
    """Return the chance that the mean of values is below that of others on other subsamples."""
    gap, error = _gap(values, lead)
    if error == 0:
        return 1.0 if gap > 0 else 0.5
    return 0.5 * math.erfc(-gap / error / math.sqrt(2.0))


def _gap(values: np.ndarray, lead: np.ndarray) -> tuple[float, float]:
    """Return the mean difference over the common subsamples, and its standard error."""
    both = min(len(lead), len(values))
    gaps = lead[:both] - values[:both]
    return float(np.mean(gaps)), float(np.std(gaps, ddof=1)) / math.sqrt(both)

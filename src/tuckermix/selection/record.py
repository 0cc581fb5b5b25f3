"""Records of a comparison and of its outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tuckermix._records import Record

NESTED = 0.95
"""Two partitions are nested where this share of the samples goes with its cluster."""

BOTH_GOOD = 0.9
"""A number of clusters whose score is that part of the best is worth a look."""

SURE = 0.9
"""A number of clusters is as good as the chosen one where the chance that it is behind is less."""

SAME = 0.01
"""Scores that differ by less make no difference: another seed moves them by as much."""

ANOTHER, PEAK = 1.4, 0.5
"""Coarser and finer views of the data have fewer or more clusters by this factor at least, and this
part of the best score."""


CLEAR_STABILITY, CLEAR_SHARE = 0.99, 0.99
"""Groups that come back and keep this share of their weight hardly touch each other. Modularity
favours parts of them, because its largest value, 1 - 1/K, grows with their number."""

NOT_FAR = 0.95
"""A clear partition leads only if it has this part of the largest score. Two clear groups have at
most 0.71, and many parts of them, drawn at random, about 0.72, so that the groups come as near as
that. Persons among whom some stand apart in all their pictures are further away: the groups are
clear and have 0.59 to 0.7, and the persons, with 0.76 and more, are clusters all the same."""


MODULARITY_POWER = 4.0
"""How much modularity counts beside stability where views of images are compared, for many
clusters. Chosen on the tuning part (page of decisions, "By what are views ranked?")."""


def weight_of(modularity: float, n_clusters: int) -> float:
    r"""Return what the stability of a view counts by, :math:`q^{4 (1 - 2 / K)}`.

    The light on faces makes groups that come back as reliably as persons, and touch each other
    more. Two clusters are not weighed: their modularities differ by how dense a graph is more than
    by where it is cut.

    Parameters
    ----------
    modularity : float
        The modularity q of the labels on the graph of the nearest neighbours in the view, as many
        for all views.
    n_clusters : int
        The number of clusters, K.

    Returns
    -------
    weight : float
        From 0 to 1.
    """
    power = MODULARITY_POWER * (1.0 - 2.0 / max(2, n_clusters))
    return max(modularity, 0.0) ** power


@dataclass(frozen=True)
class Trial(Record):
    """One number of clusters in one view.

    Attributes
    ----------
    n_clusters : int
        The number of clusters, K, that is tried.
    view : str
        The name of the candidate.
    stability : float
        The mean adjusted Rand index between labels from all samples and from 80 % of them.
    modularity : float
        That of the partition of all samples.
    n_subsamples : int
        How many subsamples the mean is over.
    within : float, default=0.0
        The share of the weight of the graph that lies within clusters.
    weight : float, default=1.0
        What stability counts by where views are compared, see `weight_of`.
    """

    n_clusters: int
    view: str
    stability: float
    modularity: float
    n_subsamples: int
    within: float = 0.0
    weight: float = 1.0

    @property
    def worth(self) -> float:
        """Stability times `weight`, by which the view is chosen."""
        return self.stability * self.weight

    @property
    def clear(self) -> bool:
        """Whether the clusters come back and hardly touch each other."""
        return self.stability >= CLEAR_STABILITY and self.within >= CLEAR_SHARE

    @property
    def possible(self) -> float:
        """The largest modularity that K clusters can have, ``1 - 1/K``."""
        return 1.0 - 1.0 / max(2, self.n_clusters)

    @property
    def quality(self) -> float:
        """The modularity over the root of the largest possible.

        It is the geometric mean of the modularity, which grows with the number of clusters even
        where they are parts of others, and of its share of the possible, which falls with every
        cluster that touches another.
        """
        return self.modularity / math.sqrt(self.possible)

    @property
    def score(self) -> float:
        """Stability times quality, by which the number of clusters is chosen."""
        return self.stability * self.quality

    @property
    def share_of_possible(self) -> float:
        """Stability times modularity relative to the most that K clusters can have."""
        return self.stability * self.modularity / self.possible


@dataclass(frozen=True)
class Selection(Record):
    """The record of a choice.

    Attributes
    ----------
    trials : list of Trial
        All that was compared, by number of clusters, then in the order of the candidates.
    n_clusters : int
        The chosen number of clusters.
    view : str
        The chosen candidate.
    next_n_clusters : int or None
        The next best number of clusters, in its best view; None where only one was tried.
    behind : float or None
        How far its score is behind that of the chosen one, as a share of it.
    nested : list of dict
        For each other number of clusters whose score is at least 0.9 of the best, and for `coarser`
        and `finer`: `n_clusters`, `share`, the share of samples that lie in the coarser cluster to
        which their finer one mostly belongs, and `nested`, whether that is at least 0.95.
    n_samples : int
        The number of samples on which all this was tried.
    sure : float or None
        The chance that the chosen number is ahead of all others on other subsamples of the same
        samples; None where no other was compared, or one that scores more is no better, see
        `equal`.
    equal : list of int
        Other numbers that are as good: the chance that they are behind is less than 0.9.
    coarser, finer : int or None
        The best of the numbers that are smaller, or larger, by a factor of 1.4 or more and score
        more than those beside them.
    noise : list of float
        The scores of the best number in normal clouds with the same directions. Where the samples
        do not score clearly more, `n_clusters` is 1, and `next_n_clusters` is that number.
    """

    trials: list[Trial]
    n_clusters: int
    view: str
    next_n_clusters: int | None = None
    behind: float | None = None
    nested: list[dict[str, Any]] = field(default_factory=list)
    n_samples: int = 0
    sure: float | None = None
    equal: list[int] = field(default_factory=list)
    coarser: int | None = None
    finer: int | None = None
    noise: list[float] = field(default_factory=list)

    @property
    def table(self) -> list[dict[str, Any]]:
        """All trials as dictionaries, ready for a data frame."""
        return [{**trial.to_dict(), "score": trial.score} for trial in self.trials]

    @property
    def curve(self) -> list[Trial]:
        """The best view for each number of clusters, the numbers rising."""
        return best_views(self.trials)

    @property
    def views(self) -> list[str]:
        """The names of the candidates."""
        return list(dict.fromkeys(trial.view for trial in self.trials))

    def of(self, n_clusters: int) -> list[Trial]:
        """Return what was tried for a number of clusters, the best view first."""
        found = [trial for trial in self.trials if trial.n_clusters == n_clusters]
        return sorted(found, key=lambda trial: -trial.worth)

    def __str__(self) -> str:
        if self.n_clusters == 1:
            return self._nothing()
        chosen = self.of(self.n_clusters)
        first = chosen[0]
        lines = [self._headline()]
        if self.equal:
            others = _listed([self.n_clusters, *self.equal])
            lines.append(f"{others} clusters are about equally good.")
        lines.append(
            f"View {self.view!r}: stability {first.stability:.3f}, modularity "
            f"{first.modularity:.3f}, score {first.score:.3f}."
        )
        if len(chosen) > 1:
            second = chosen[1]
            lines.append(
                f"Next view: {second.view!r}, stability {second.stability:.3f}, modularity "
                f"{second.modularity:.3f}."
            )
        if self.next_n_clusters is not None and self.behind is not None:
            text = f"Next number of clusters: {self.next_n_clusters}, {self.behind:.1%} behind."
            if self.sure is not None:
                text += f" The choice is {self.sure:.0%} sure."
            lines.append(text)
        for other in self.nested:
            low, high = sorted((other["n_clusters"], self.n_clusters))
            says = "nest in" if other["nested"] else "do not nest in"
            lines.append(f"The {high} clusters {says} the {low} ({other['share']:.1%} of samples).")
        return "\n".join(lines)

    def _headline(self) -> str:
        """Return the answer in one sentence, with coarser and finer ones."""
        text = f"{self.n_clusters} clusters"
        views = []
        if self.coarser is not None:
            views.append(f"{self.coarser} is a coarser view of the same data")
        if self.finer is not None:
            kind = "finer one" if views else "finer view of the same data"
            views.append(f"{self.finer} a {kind}" if views else f"{self.finer} is a {kind}")
        return f"{text}; {', '.join(views)}." if views else f"{text}."

    def _nothing(self) -> str:
        """Return why there is one cluster."""
        if not self.noise:
            return "1 cluster."
        best = self.of(self.next_n_clusters or 2)[0]
        return (
            f"1 cluster: nothing is clustered. {best.n_clusters} clusters would score "
            f"{best.score:.3f}, and in noise with the same directions {max(self.noise):.3f}."
        )


def _listed(numbers: list[int]) -> str:
    """Return numbers in words: "9, 10 and 11"."""
    *some, last = (str(number) for number in sorted(numbers))
    return f"{', '.join(some)} and {last}"


def best_views(trials: list[Trial]) -> list[Trial]:
    """Return the trial of the largest worth for each number of clusters, the numbers rising."""
    best: dict[int, Trial] = {}
    for trial in trials:
        held = best.get(trial.n_clusters)
        if held is None or trial.worth > held.worth:
            best[trial.n_clusters] = trial
    return [best[n_clusters] for n_clusters in sorted(best)]


def by_merit(curve: list[Trial]) -> list[Trial]:
    """Order trials by the score, the finest clear one first where it is no compromise.

    Of scores that are the same within 0.01, and a tenth of what one of many clusters counts for,
    that of the fewest clusters comes first. A clear partition leads if it has at least that share
    of the largest score for its number of clusters that the trial with the largest score has for
    its own, and is not far behind it.
    """
    order = sorted(curve, key=lambda trial: -trial.score)
    limit = order[0].score - min(SAME, 0.1 / order[0].n_clusters) if order else 0.0
    same = [trial for trial in order if trial.score >= limit]
    order.sort(key=lambda trial: trial is not min(same, key=lambda one: one.n_clusters))
    clear = [trial for trial in curve if trial.clear]
    if clear:
        finest = max(clear, key=lambda trial: trial.n_clusters)
        best = order[0]
        near = finest.score >= NOT_FAR * best.score
        if near and finest.share_of_possible >= best.share_of_possible:
            order.remove(finest)
            order.insert(0, finest)
    return order


def summarize(
    trials: list[Trial],
    names: list[str],
    labels: dict[int, np.ndarray],
    n_samples: int,
    chances: dict[int, float] | None = None,
    noise: list[float] | None = None,
    *,
    one: bool = False,
) -> Selection:
    """Choose among trials: the best view for each number, then the largest score.

    Parameters
    ----------
    trials : list of Trial
        All trials.
    names : list of str
        The names of the candidates in their order.
    labels : dict of int to ndarray of shape (n_samples,)
        Labels of all samples in the best view for each number of clusters.
    n_samples : int
        The number of samples.
    chances : dict of int to float or None, default=None
        The chance that a number is behind the best one, for those that were compared.
    noise : list of float or None, default=None
        Scores of noise.
    one : bool, default=False
        Whether the best number is no better than in noise.

    Returns
    -------
    selection : Selection
        The record.
    """
    rising = best_views(trials)
    curve = by_merit(rising)
    best, order = curve[0], sorted(trials, key=lambda t: (t.n_clusters, names.index(t.view)))
    if one:
        order.insert(0, Trial(1, best.view, 1.0, 0.0, 0))
        next_best, scores = best.n_clusters, noise or []
        return Selection(order, 1, best.view, next_best, n_samples=n_samples, noise=scores)
    behind = None
    if len(curve) > 1:
        behind = max(0.0, 1.0 - curve[1].score / best.score) if best.score > 0 else 0.0
    coarser, finer = _other_peaks(rising, best.n_clusters)
    nested = []
    for other in curve[1:]:
        near = other.score >= BOTH_GOOD * best.score
        if not near and other.n_clusters not in (coarser, finer):
            continue
        low, high = sorted((best.n_clusters, other.n_clusters))
        share = share_nested(labels[high], labels[low])
        nested.append({"n_clusters": other.n_clusters, "share": share, "nested": share >= NESTED})
    chances = chances or {}
    sure = min(chances.values(), default=None)
    return Selection(
        order,
        best.n_clusters,
        best.view,
        next_n_clusters=curve[1].n_clusters if len(curve) > 1 else None,
        behind=behind,
        nested=nested,
        n_samples=n_samples,
        sure=sure if sure is None or sure >= 0.5 else None,  # others may score more
        equal=sorted(number for number, chance in chances.items() if chance < SURE),
        coarser=coarser,
        finer=finer,
        noise=noise or [],
    )


def _other_peaks(curve: list[Trial], n_clusters: int) -> tuple[int | None, int | None]:
    """Return the best peaks of a curve that are well below and well above a number."""
    scores = [-np.inf, *(trial.score for trial in curve), np.inf]  # the last may still rise
    least = PEAK * max(scores[:-1])
    peaks = [
        trial
        for place, trial in enumerate(curve)
        if trial.score >= max(scores[place], scores[place + 2], least)
    ]
    below = [trial for trial in peaks if trial.n_clusters * ANOTHER <= n_clusters]
    above = [trial for trial in peaks if trial.n_clusters >= ANOTHER * n_clusters]
    first, second = (max(some, key=lambda t: t.score, default=None) for some in (below, above))
    return first.n_clusters if first else None, second.n_clusters if second else None


def share_nested(finer: np.ndarray, coarser: np.ndarray) -> float:
    """Return the share of samples in the coarser cluster to which their finer one mostly belongs.

    Parameters
    ----------
    finer, coarser : ndarray of shape (n_samples,)
        Labels from 0 on.

    Returns
    -------
    share : float
        1 where every finer cluster lies within a coarser one.
    """
    counts = np.zeros((int(finer.max()) + 1, int(coarser.max()) + 1))
    np.add.at(counts, (finer, coarser), 1)
    return float(counts.max(axis=1).sum() / len(finer))

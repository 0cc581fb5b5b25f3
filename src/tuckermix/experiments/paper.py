"""The numbers of the paper's Tables 1 to 6, as printed there.

Each block is one table: row, metric, statistic, then one number a method in the order of the
block's header. "variance" is the number in brackets under each mean. Where the paper prints none (a
single run), there is no line.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuckermix._records import Record

__all__ = [
    "PAPER_COLUMNS",
    "PAPER_SCORES",
    "PAPER_STARTS",
    "PaperScore",
    "PaperStarts",
    "paper_score",
]

_TABLE_2 = """
MM ALS B-NMF PGM DRCC Tri-ONTD PCA-B PCA-Multinomial
CBCL   AC mean       0.6755    0.6424    0.6305    0.5976    0.7352    0.5764    0.6394    0.6208
CBCL   AC variance   5.494e-4  3.255e-4  3.594e-4  2.073e-3  1.367e-3  3.503e-5  3.301e-3  1.018e-4
CBCL   NMI mean      0.0928    0.0604    0.0509    0.0334    0.1766    0.0824    0.0669    0.0430
CBCL   NMI variance  6.351e-4  2.505e-4  2.296e-4  7.794e-4  2.777e-3  1.836e-4  1.181e-3  5.524e-5
"""

_TABLE_3 = """
MM ALS B-NMF PGM DRCC PCA-B PCA-Multinomial
K=3    AC mean         0.9173    0.9133    0.8820    0.9160    0.9013    0.8506    0.9114
K=3    AC variance   2.800e-4 2.6111e-4  1.644e-4  1.800e-4  3.589e-4  5.274e-3  1.700e-4
K=3    NMI mean        0.7351    0.7344    0.6806    0.7307    0.7115    0.6231    0.7252
K=3    NMI variance  2.488e-3  1.654e-3  6.069e-4  1.792e-3  1.704e-3  1.492e-2  9.761e-4
K=4    AC mean         0.7140    0.6520    0.6780    0.7195    0.6575    0.6670    0.6800
K=4    AC variance   8.518e-4  8.611e-3  4.138e-4  5.325e-4  3.237e-3  4.576e-3  4.906e-4
K=4    NMI mean        0.4654    0.4181    0.4446    0.4680    0.4071    0.4184    0.4360
K=4    NMI variance  1.726e-3  3.279e-3  5.964e-4  1.181e-3  3.278e-3  2.588e-3  7.243e-4
K=5    AC mean         0.6216    0.7112    0.6104    0.6764    0.6632    0.6960    0.7196
K=5    AC variance   7.731e-3  3.292e-4  3.839e-3  1.533e-3  2.792e-4  1.370e-3  1.334e-3
K=5    NMI mean        0.5201    0.5590    0.4992    0.5373    0.5198    0.5242    0.5547
K=5    NMI variance  2.080e-3  1.018e-3  2.921e-3  9.196e-4  2.156e-4  1.130e-3  5.525e-4
K=6    AC mean         0.5370    0.5337    0.5156    0.5466    0.4983    0.5283    0.5540
K=6    AC variance   4.249e-3  3.626e-3  3.812e-3  4.257e-3  1.061e-3  5.234e-3  6.386e-3
K=6    NMI mean        0.4007    0.3852    0.3980    0.3962    0.3670    0.3850    0.4083
K=6    NMI variance  9.891e-4  6.482e-4  1.197e-3  1.507e-3  1.348e-3  3.077e-3  1.945e-3
K=7    AC mean         0.5988    0.5974    0.5762    0.5940    0.6585    0.6074    0.6231
K=7    AC variance   8.816e-5  3.295e-3  1.051e-3  3.704e-3  1.789e-3  3.704e-3  5.618e-3
K=7    NMI mean        0.5382    0.5378    0.4972    0.5342    0.5629    0.5097    0.5401
K=7    NMI variance  7.593e-4  1.607e-3  7.238e-4  9.776e-4  9.366e-4  1.204e-3  3.828e-4
K=8    AC mean         0.6455    0.6162    0.5930    0.5942    0.6270    0.5923    0.6485
K=8    AC variance   3.217e-3  8.523e-4  3.880e-3  3.267e-3  2.312e-3  4.726e-3  4.496e-3
K=8    NMI mean        0.5427    0.5496    0.4979    0.5152    0.5033    0.4944    0.5254
K=8    NMI variance  5.694e-4  6.968e-4  1.329e-3  2.243e-3  3.711e-3  2.286e-3  2.367e-3
K=9    AC mean         0.5211    0.5567    0.5137    0.5302    0.5240    0.5224    0.5756
K=9    AC variance   1.251e-3  8.173e-4  5.528e-4  1.816e-3  7.867e-4  8.213e-4  3.569e-3
K=9    NMI mean        0.4621    0.4716    0.4343    0.4720    0.4493    0.4449    0.4774
K=9    NMI variance  3.209e-4  3.473e-4  3.890e-4  5.279e-4  8.811e-4  1.130e-3  5.103e-4
K=10   AC mean         0.4980    0.4800    0.4474    0.4958    0.4668    0.4800    0.5126
K=10   AC variance   1.154e-3  9.220e-4  5.823e-4  1.833e-3  2.846e-3  2.761e-3  1.785e-3
K=10   NMI mean        0.4470    0.4505    0.4089    0.4516    0.4053    0.4142    0.4461
K=10   NMI variance  7.543e-4  5.267e-4  3.474e-4  2.051e-3  3.402e-3  8.642e-4  1.146e-3
"""

_TABLE_4 = """
MM ALS B-NMF PGM DRCC PCA-B PCA-Multinomial
K=68   AC mean         0.6088    0.5633    0.6192    0.5120    0.2745    0.4314    0.6533
K=68   AC variance   4.563e-4  2.101e-4  4.311e-4  7.590e-4  2.736e-4  1.018e-3  8.749e-4
K=68   NMI mean        0.8066    0.7791    0.8099    0.7540    0.5652    0.6828    0.8634
K=68   NMI variance  2.222e-4  4.083e-5  9.111e-5  9.963e-5  3.231e-4  3.197e-4  2.484e-4
K=58   AC mean         0.6182    0.5730    0.5968    0.5482    0.2504    0.4125    0.6781
K=58   AC variance   5.719e-4  3.549e-3  1.884e-4  1.362e-3  2.215e-4  1.318e-3  9.944e-4
K=58   NMI mean        0.8027    0.7790    0.7955    0.7580    0.5140    0.6555    0.8742
K=58   NMI variance  2.504e-4  6.398e-4  2.789e-5  2.096e-4  2.995e-4  8.198e-4  1.483e-4
K=48   AC mean         0.6112    0.5964    0.6147    0.5951    0.2875    0.4228    0.6990
K=48   AC variance   1.625e-4  6.027e-4  1.777e-3  5.105e-4  4.925e-4  6.271e-4  7.863e-4
K=48   NMI mean        0.7899    0.7812    0.7896    0.7775    0.5266    0.6491    0.8480
K=48   NMI variance  1.084e-4  4.319e-4  1.928e-4  1.633e-4  2.659e-4  1.115e-4  8.585e-5
K=38   AC mean         0.5799    0.6197    0.6138    0.5930    0.2621    0.3911    0.7118
K=38   AC variance   2.292e-3  9.405e-4  9.892e-4  3.646e-4  3.578e-4  1.227e-3  1.384e-3
K=38   NMI mean        0.7552    0.7769    0.7717    0.7553    0.4461    0.5949    0.8516
K=38   NMI variance  3.956e-4  6.884e-4  5.941e-4  1.132e-4  1.461e-4  5.438e-4  1.716e-4
K=28   AC mean         0.6224    0.6214    0.6329    0.6408    0.2619    0.4212    0.6877
K=28   AC variance   2.564e-3  1.448e-3  4.329e-4  8.523e-4  2.704e-4  4.090e-3  4.106e-3
K=28   NMI mean        0.7470    0.7610    0.7586    0.7519    0.4033    0.5669    0.8153
K=28   NMI variance  4.750e-4  5.707e-4  1.975e-4  3.880e-4  3.592e-4  2.179e-3  5.873e-4
K=18   AC mean         0.6367    0.6387    0.5892    0.6511    0.2962    0.4865    0.7329
K=18   AC variance   6.368e-4  1.002e-2  5.057e-3  2.232e-3  2.326e-3  6.932e-3  1.352e-3
K=18   NMI mean        0.7290    0.7433    0.7089    0.7377    0.3836    0.5917    0.8010
K=18   NMI variance  5.039e-4  2.437e-3  8.551e-4  4.477e-4  1.570e-3  3.972e-3  7.787e-4
K=8    AC mean         0.6690    0.6256    0.6321    0.6285    0.3809    0.4785    0.6523
K=8    AC variance   1.073e-3  2.698e-3  9.592e-4  1.396e-3  9.553e-3  3.036e-2  1.634e-2
K=8    NMI mean        0.6512    0.6797    0.6382    0.6289    0.3110    0.4403    0.6803
K=8    NMI variance  4.287e-3  5.646e-4  6.623e-4  1.509e-3  1.269e-2  3.941e-2  1.057e-2
"""

_TABLE_5 = """
MM ALS B-NMF PGM DRCC PCA-B PCA-Multinomial
ORL    AC mean         0.6440    0.6820    0.6280    0.6300    0.5580    0.6360    0.7340
ORL    AC variance   3.730e-3  9.070e-3  8.070e-3  3.650e-3  4.870e-3  5.130e-3  2.230e-3
ORL    NMI mean        0.7308    0.7269    0.7107    0.7236    0.6498    0.6968    0.7996
ORL    NMI variance  1.842e-3  5.946e-3  2.688e-3  1.668e-3  8.727e-4  5.467e-3  7.283e-4
YaleB  AC mean         0.2175    0.2270    0.2104    0.2084    0.1002    0.2117    0.3293
YaleB  NMI mean        0.3534    0.3470    0.3508    0.3477    0.1455    0.3402    0.4772
"""

# Table 6 is about DynTex++.
_TABLE_6 = """
PCA-B PCA-Multinomial
K=2    AC mean         0.5550    0.7901
K=2    NMI mean        0.1034    0.4056
K=3    AC mean         0.4230    0.5827
K=3    AC variance   4.069e-3  5.522e-4
K=3    NMI mean        0.1849    0.2047
K=3    NMI variance  8.471e-3  5.924e-4
K=4    AC mean         0.3727    0.5767
K=4    AC variance   1.429e-3  6.350e-3
K=4    NMI mean        0.2261    0.3360
K=4    NMI variance  1.667e-3  6.116e-4
K=6    AC mean         0.2983    0.3842
K=6    AC variance   4.088e-4  1.361e-3
K=6    NMI mean        0.2079    0.3012
K=6    NMI variance  4.817e-4  9.165e-4
K=8    AC mean         0.2507    0.4007
K=8    AC variance   5.244e-4  1.325e-3
K=8    NMI mean        0.2259    0.3538
K=8    NMI variance  2.926e-4  5.356e-4
K=10   AC mean         0.1937    0.3300
K=10   AC variance   8.527e-5  1.272e-3
K=10   NMI mean        0.2451    0.3285
K=10   NMI variance  1.057e-3  4.801e-4
K=12   AC mean         0.2024    0.2980
K=12   AC variance   3.416e-4  2.519e-4
K=12   NMI mean        0.2520    0.3444
K=12   NMI variance  9.549e-5  1.563e-4
"""


@dataclass(frozen=True)
class PaperScore(Record):
    """A cell of the paper.

    Attributes
    ----------
    mean : float
        The mean over the runs.
    variance : float or None
        The variance over the runs; None for a single run.
    """

    mean: float
    variance: float | None = None


@dataclass(frozen=True)
class PaperStarts(Record):
    """A row of the paper's Table 1: one metric over twenty random starts.

    Attributes
    ----------
    mean, deviation, best, worst : float
        The statistics as printed. The paper heads the second "Std Var"; its size fits a standard
        deviation.
    """

    mean: float
    deviation: float
    best: float
    worst: float


def _parse(block: str) -> dict[tuple[str, str, str], PaperScore]:
    """Read a block into scores by (row, method, metric)."""
    header, *lines = block.strip().splitlines()
    methods = header.split()
    numbers: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in lines:
        row, metric, statistic, *values = line.split()
        for method, value in zip(methods, values, strict=True):
            numbers.setdefault((row, method, metric), {})[statistic] = float(value)
    return {key: PaperScore(**values) for key, values in numbers.items()}


PAPER_SCORES: dict[str, dict[tuple[str, str, str], PaperScore]] = {
    "table2": _parse(_TABLE_2),
    "table3": _parse(_TABLE_3),
    "table4": _parse(_TABLE_4),
    "table5": _parse(_TABLE_5),
    "table6": _parse(_TABLE_6),
}
"""Scores by table, then by (row, method, "AC" or "NMI")."""

# The text around Table 1 gives the two HOSVD starts, each a single run. The table heads its second
# column "Std Var"; the spread between best and worst fits a standard deviation, so it is squared.
PAPER_SCORES["table1"] = {
    ("HOSVD I", "PCA-Multinomial", "AC"): PaperScore(0.7620),
    ("HOSVD I", "PCA-Multinomial", "NMI"): PaperScore(0.8199),
    ("HOSVD II", "PCA-Multinomial", "AC"): PaperScore(0.7240),
    ("HOSVD II", "PCA-Multinomial", "NMI"): PaperScore(0.8132),
    ("random", "PCA-Multinomial", "AC"): PaperScore(0.7120, 0.0394**2),
    ("random", "PCA-Multinomial", "NMI"): PaperScore(0.8189, 0.0210**2),
}

PAPER_COLUMNS = {"PCA-Multinomial-1": "PCA-Multinomial"}
"""Columns here that stand beside a column of the paper with another name."""

PAPER_STARTS: dict[str, PaperStarts] = {
    "AC": PaperStarts(mean=0.7120, deviation=0.0394, best=0.7630, worst=0.6150),
    "NMI": PaperStarts(mean=0.8189, deviation=0.0210, best=0.8467, worst=0.7717),
}
"""Table 1, by metric."""


def paper_score(table: str, row: str, method: str, metric: str) -> PaperScore | None:
    """Return the paper's score for a cell, or None where the paper has none.

    Parameters
    ----------
    table : str
        "table1" … "table6".
    row : str
        The paper's row, such as "K=4" or "ORL".
    method : str
        The column, here or in the paper.
    metric : {"AC", "NMI"}
        The measure.

    Returns
    -------
    score : PaperScore or None
        Mean and variance as printed.
    """
    column = PAPER_COLUMNS.get(method, method)
    return PAPER_SCORES.get(table, {}).get((row, column, metric))

"""The methods with which the paper compares, and later rivals, like `TuckerClustering` to use."""

from tuckermix.baselines._base import BaselineClustering, Run, Trace
from tuckermix.baselines.bayesian import BayesianNMF
from tuckermix.baselines.drcc import DRCC
from tuckermix.baselines.nmf import AlternatingNMF, MultiplicativeNMF, ProjectedGradientNMF
from tuckermix.baselines.self_expression import ADSSC, LSR, SSCOMP, TAGCSC, AutoSC, EnSC
from tuckermix.baselines.tucker import ASIT, PCAB, PCAMultinomial, TriONTD

__all__ = [
    "PCAMultinomial",
    "MultiplicativeNMF",
    "AlternatingNMF",
    "BayesianNMF",
    "ProjectedGradientNMF",
    "DRCC",
    "TriONTD",
    "ASIT",
    "PCAB",
    "LSR",
    "AutoSC",
    "ADSSC",
    "EnSC",
    "SSCOMP",
    "TAGCSC",
    # For methods of your own.
    "BaselineClustering",
    "Run",
    "Trace",
]

"""The methods with which the paper compares, and later rivals, like `TuckerClustering` to use."""

from tuckermix.baselines._base import BaselineClustering, Run, Trace
from tuckermix.baselines.adssc import ADSSC
from tuckermix.baselines.bayesian import BayesianNMF
from tuckermix.baselines.drcc import DRCC
from tuckermix.baselines.ensc import EnSC
from tuckermix.baselines.nmf import AlternatingNMF, MultiplicativeNMF, ProjectedGradientNMF
from tuckermix.baselines.self_expression import LSR, SSCOMP, AutoSC
from tuckermix.baselines.tri_ontd import TriONTD
from tuckermix.baselines.tucker import ASIT, PCAB, PCAMultinomial

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
    # For methods of your own.
    "BaselineClustering",
    "Run",
    "Trace",
]

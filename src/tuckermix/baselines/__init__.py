"""The methods with which the paper compares, and later rivals, like `TuckerClustering` to use."""

from tuckermix._declaration import declare
from tuckermix.baselines._base import BaselineClustering
from tuckermix.baselines._run import Run, Trace
from tuckermix.baselines.adssc import ADSSC
from tuckermix.baselines.alternating import AlternatingNMF
from tuckermix.baselines.asit import ASIT
from tuckermix.baselines.autosc import AutoSC
from tuckermix.baselines.bayesian import BayesianNMF
from tuckermix.baselines.drcc import DRCC
from tuckermix.baselines.ensc import EnSC
from tuckermix.baselines.lsr import LSR
from tuckermix.baselines.multiplicative import MultiplicativeNMF
from tuckermix.baselines.pca_multinomial import PCAMultinomial
from tuckermix.baselines.pcab import PCAB
from tuckermix.baselines.projected_gradient import ProjectedGradientNMF
from tuckermix.baselines.sscomp import SSCOMP
from tuckermix.baselines.tri_ontd import TriONTD

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
    "declare",
]

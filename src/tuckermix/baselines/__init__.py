"""The methods with which the paper compares, with the interface of `TuckerClustering`."""

from tuckermix.baselines.alternating import AlternatingNMF
from tuckermix.baselines.asit import ASIT
from tuckermix.baselines.bayesian import BayesianNMF
from tuckermix.baselines.drcc import DRCC
from tuckermix.baselines.multiplicative import MultiplicativeNMF
from tuckermix.baselines.pca_multinomial import PCAMultinomial
from tuckermix.baselines.pcab import PCAB
from tuckermix.baselines.projected_gradient import ProjectedGradientNMF
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
]

"""Files and generators of samples: everything that ends in an array with samples on axis 0."""

from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._errors import DatasetNotFound, ReadError
from tuckermix.datasets._read import read
from tuckermix.datasets._registry import load
from tuckermix.datasets._synthetic import make_tensor_clusters

__all__ = ["Dataset", "DatasetNotFound", "ReadError", "load", "make_tensor_clusters", "read"]

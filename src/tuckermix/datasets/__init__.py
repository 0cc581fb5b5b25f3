"""Files and generators of samples: everything that ends in an array with samples on axis 0."""

from tuckermix._reading import ReadError
from tuckermix.datasets._dataset import Dataset, labels_like
from tuckermix.datasets._embeddings import read_embeddings
from tuckermix.datasets._objects import make_objects
from tuckermix.datasets._pictures import VIDEO_SUFFIXES
from tuckermix.datasets._read import READERS, read
from tuckermix.datasets._registry import (
    DatasetInfo,
    DatasetNotFound,
    data_folders,
    describe,
    list_datasets,
    load,
)
from tuckermix.datasets._synthetic import make_dynamic_textures, make_tensor_clusters

__all__ = [
    "READERS",
    "VIDEO_SUFFIXES",
    "Dataset",
    "DatasetInfo",
    "DatasetNotFound",
    "ReadError",
    "data_folders",
    "describe",
    "labels_like",
    "list_datasets",
    "load",
    "make_dynamic_textures",
    "make_objects",
    "make_tensor_clusters",
    "read",
    "read_embeddings",
]

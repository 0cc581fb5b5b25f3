"""Choosing the view and the number of clusters without labels, by resampling the label step."""

from tuckermix.selection.auto import AutoClustering
from tuckermix.selection.multiview import MultiViewClustering
from tuckermix.selection.record import Selection, Trial

__all__ = ["AutoClustering", "MultiViewClustering", "Selection", "Trial"]

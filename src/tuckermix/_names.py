"""The words by which ways of computing are called, each declared once.

Tables such as `tuckermix.decomposition.SOLVERS` have them as keys; the command line shows and
completes them. Nothing is imported here, so that ``tuckermix --help`` needs no numerical library.
"""

from __future__ import annotations

EXACT, TRUST_REGION, JOINT = SOLVERS = ("exact", "trust-region", "joint")
INITS = ("hosvd", "hosvd-samples", "random")
ANCHORED, MIN_VOLUME, ARCHETYPES = SIMPLICES = ("anchored", "min-volume", "archetypes")
GRAPH, SUBSPACE, MEMBERSHIPS, ARGMAX = LABELLINGS = ("graph", "subspace", "memberships", "argmax")
OUTLIERS = ("keep", "label")
"""What is done with outliers: they get the label of a cluster, or -1."""

(IMPUTE,) = MISSING = ("impute",)
"""What is done with gaps, where they are not refused."""

SAMPLE, DATASET, UNIT = SCALES = ("sample", "dataset", "unit")
"""Over what intensities are brought to one range."""

AS_STORED, COLUMNS = "none", "columns"
"""Further ways to treat values: leave them, or standardise the columns of a table."""

PIXELS, SCATTERING, LOG_SCATTERING = FEATURES = ("pixels", "scattering", "log-scattering")
"""The views that are words of ``--features``; `tuckermix.features.registry` says what they are."""

VIEWS = ("auto", "tensors", "pixels", "scattering")
"""Views that a method on the benchmark is given; "auto" asks the tags of scikit-learn."""

STOP, SKIP = ON_ERROR = ("stop", "skip")
"""Ways to go on at a file of a folder that cannot be read."""

CROP, PAD, STRETCH = FITS = ("crop", "pad", "stretch")
"""Ways to give pictures of other proportions one size."""

KINDS = ("auto", "signal", "image", "colour", "channels", "volume", "video")
"""Ways to draw a sample; "auto" goes by its shape."""

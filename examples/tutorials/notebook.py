"""
In a notebook
=============

The estimator shows its parameters, tells how far it is, and draws what it found below the cell. Fetch this page as a
notebook at its end.
"""

# %%
# A model that is not fitted yet
# ------------------------------
# It is a scikit-learn estimator, and shows itself as one.

from tuckermix import TuckerClustering
from tuckermix.datasets import load

digits = load("digits")
X = digits.X.astype(float)
model = TuckerClustering(n_clusters=10, random_state=0)
model

# %%
# Progress
# --------
# scikit-learn 1.9 brought callbacks, and fits here call them. A bar needs ``rich``; it grows with each sweep over
# the data and ends when the solver does.

from sklearn.callback import ProgressBar

model.set_callbacks(ProgressBar())
model.fit(X)

# %%
# Without a bar there is the log, ``logging.basicConfig(level=logging.INFO)``, and afterwards the history of the fit.

for record in model.history_:
    print(record.iteration, f"cost {record.cost:,.0f}")

# %%
# What came out
# -------------
# Labels, soft labels, centroids, and a number that says whether the memberships are the best ones for the factors that
# were found: 0, or rounding, if so.

print(model.labels_[:10])
print(model.predict_proba(X[:1]).round(2))
print(model.centroids_.shape, f"gap {model.gap_:.0e}, stopped by {model.stop_reason_}")

# %%
# Every display is one line, and gives its axes and figure back for changes.

import matplotlib.pyplot as plt

from tuckermix.plots import MapDisplay

display = MapDisplay.from_estimator(model, X)
display.figure_.suptitle("Each mark is a digit")
plt.show()

# %%
# Where classes are known, a table says what went where.

from tuckermix.metrics import clustering_accuracy
from tuckermix.plots import ConfusionDisplay

print(f"{clustering_accuracy(digits.labels, model.labels_):.1%} in the cluster of their class")
ConfusionDisplay.from_estimator(model, X, digits.labels)
plt.show()

# %%
# Pipelines and searches work as usual: `clone`, `set_params`, `make_pipeline`.

from sklearn.pipeline import make_pipeline

from tuckermix.features import Scattering

make_pipeline(Scattering(J=2), TuckerClustering(10, random_state=0))

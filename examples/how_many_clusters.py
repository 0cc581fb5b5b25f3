"""How many clusters, and by what to compare: ``python examples/how_many_clusters.py``.

Planted clusters, whose number is known, and scikit-learn's digits, where two hands may differ more
than two digits.
"""

from tuckermix import AutoClustering
from tuckermix.datasets import load, make_tensor_clusters

planted = make_tensor_clusters(240, shape=(8, 8), n_clusters=6, noise=1.5, random_state=0)
model = AutoClustering(random_state=0).fit(planted.X)
print(f"planted: {model.n_clusters_} clusters found, 6 are there")

digits = load("digits").X[:300]
chosen = AutoClustering(calibrate=True, random_state=0).fit(digits)
print("digits:", chosen.selection_)  # what was compared, the next best number, nested partitions

# The score of each number of clusters: a sharp peak is a clear answer, a plateau is not.
for trial in chosen.selection_.curve:
    print(f"{trial.n_clusters:4d} {trial.view:20s} {'#' * round(40 * trial.score)}")

# It predicts with what it chose. With `calibrate`, 0.8 means that four of five fits would agree.
probabilities = chosen.predict_proba(digits[:5])

import sys

import pytest


def test_the_former_place_of_the_tables_says_where_they_are(monkeypatch):
    import tuckermix.experiments

    pytest.importorskip("tuckermix_bench")
    with pytest.warns(DeprecationWarning, match="moved to tuckermix_bench.reproduce"):
        assert callable(tuckermix.experiments.reproduce)
    monkeypatch.setitem(sys.modules, "tuckermix_bench", None)
    with pytest.raises(ImportError, match="pip install tuckermix-bench"):
        tuckermix.experiments.reproduce  # noqa: B018

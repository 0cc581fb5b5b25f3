import subprocess
import sys

from sklearn.pipeline import make_pipeline

from tuckermix import TuckerClustering, _names
from tuckermix.features import registry
from tuckermix.features.registry import TRANSFORMERS, VIEWS, last_step, network_views
from tuckermix.persistence import CLASSES


def test_the_names_cost_nothing():
    code = "import sys; import tuckermix.features.registry; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_every_view_has_words_and_transformers_that_can_be_stored():
    for name, view in VIEWS.items():
        assert view.name == name
        assert view.words
        assert {type(step).__name__ for step in view.transformers()} <= set(TRANSFORMERS)
    assert set(_names.FEATURES) <= set(VIEWS)
    assert not set(TRANSFORMERS) & set(CLASSES)


def test_views_of_the_network_name_their_layers():
    for view in network_views(size=160):
        (network,) = view.transformers()
        assert view.name == f"network, {network.layer}"
        assert network.size == 160
    assert len(network_views()) == len(registry.NETWORK_LAYERS)


def test_the_last_step():
    model = TuckerClustering(2)
    assert last_step(model) is model
    pipeline = make_pipeline(*registry.LOG_SCATTERING.transformers(), model)
    assert last_step(pipeline) is model
    assert pipeline[0].log

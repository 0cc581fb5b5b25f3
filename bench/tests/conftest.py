import sys
from pathlib import Path

import pytest

# The processes of a run import the fakes by name, and inherit this path.
sys.path.insert(0, str(Path(__file__).parent))

import experiment_fakes


@pytest.fixture
def fakes():
    experiment_fakes.register()
    yield experiment_fakes
    experiment_fakes.unregister()

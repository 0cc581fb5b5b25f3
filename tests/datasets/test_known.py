import re

import pytest

from tuckermix.datasets._known import KNOWN


@pytest.mark.parametrize("name", KNOWN)
def test_all_that_a_person_needs_is_there(name):
    known = KNOWN[name]
    assert known.name == name
    assert known.title
    assert known.description.endswith(".")
    assert known.terms
    assert known.source
    assert known.layouts or name == "digits"
    assert not known.class_names or len(known.class_names) == known.n_classes
    for layout in known.layouts:
        assert layout.says
        assert all(pattern == pattern.lower() for pattern in layout.patterns)
    for file, digest in known.sha256.items():
        assert re.fullmatch("[0-9a-f]{64}", digest)
        assert any(file in layout.patterns for layout in known.layouts)


def test_the_sizes_of_the_paper():
    sizes = {name: (known.sample_shape, known.n_classes) for name, known in KNOWN.items()}
    assert sizes["cbcl"] == ((19, 19), 2)
    assert sizes["mnist"] == ((28, 28), 10)
    assert sizes["pie"] == ((32, 32), 68)
    assert sizes["orl"] == ((32, 32), 40)
    assert sizes["yaleb"] == ((32, 32), 38)
    assert sizes["dyntex++"] == ((50, 50, 50), 36)

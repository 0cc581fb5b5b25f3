"""A short run of the fuzzer, and of what it is made of."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

for package in ("h5py", "zarr", "PIL", "av", "dask", "nibabel", "pyarrow"):
    pytest.importorskip(package, reason=f"{package} is not installed")
if not Path("/proc/self/clear_refs").exists():
    pytest.skip("memory is measured on Linux only", allow_module_level=True)


@pytest.fixture
def fuzz_package(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    paths = [str(ROOT), *(path for path in sys.path if path)]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    import fuzz.__main__

    return fuzz.__main__


def test_inputs_follow_from_the_seed(fuzz_package, tmp_path):
    from fuzz.corpus import corpus
    from fuzz.mutators import spoil

    seeds = corpus(("npy", "zarr"))
    assert {seed.reader for seed in seeds} == {"npy", "zarr"}
    contents = []
    for attempt in range(2):
        for number in range(30):
            folder = tmp_path / f"{attempt}-{number}"
            folder.mkdir()
            seed = seeds[number % len(seeds)]
            spoil(seed, [seed], folder, np.random.default_rng([1, number]))
            files = sorted(file for file in folder.rglob("*") if file.is_file())
            contents.append([(file.name, file.read_bytes()) for file in files])
    assert contents[:30] == contents[30:]
    assert len({json.dumps(str(one)) for one in contents}) > 20


def test_edits_do_not_change_what_they_take_from(fuzz_package):
    from fuzz import mutators

    before = json.dumps(mutators.VALUES)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        mutators._edit(b'{"a": [1, {"b": 2}], "c": {}}', rng)
    assert json.dumps(mutators.VALUES) == before


def test_a_short_run_finds_no_fault(fuzz_package):
    readers = tuple(fuzz_package.MAKERS)
    outcomes, faults = fuzz_package.fuzz(130, seed=1, readers=readers)
    assert faults == []
    assert sum(outcomes.values()) == 130
    for reader in readers:
        assert outcomes[reader, "refused"] > 0, reader
    assert "all" in fuzz_package.table(outcomes)


@pytest.mark.slow
def test_a_short_run_with_a_child_for_each_reading_finds_no_fault(fuzz_package):
    outcomes, faults = fuzz_package.fuzz(12, seed=2, readers=("images", "hdf5"), whole=True)
    assert faults == []
    assert sum(outcomes.values()) == 12


def test_models_that_load_are_asked(fuzz_package):
    from fuzz import worker

    class Wrong:
        sample_shape_ = (2, 2)

        def predict(self, X):
            return -np.ones(len(X), dtype=int)

    with pytest.raises(AssertionError, match="labels"):
        worker._predict(Wrong())


def test_faults_are_seen(fuzz_package, monkeypatch, tmp_path):
    """A reader that fails, starts a program or takes memory is told from one that refuses."""
    from fuzz import worker
    from fuzz.corpus import corpus

    seeds = corpus(("npy",))
    watch = worker._Watch()

    def outcome(act):
        monkeypatch.setattr(worker, "_read", act)
        folder = tmp_path / act.__name__
        folder.mkdir()
        return worker.one(seeds, 0, 0, watch, folder).split("\t")[1]

    def fails(*args, **options):
        raise KeyError("x")

    def starts(*args, **options):
        __import__("subprocess").run(["true"], check=True)

    def grows(*args, **options):
        bytes(bytearray(b"x") * (worker.MAX_BYTES + 2 * worker.SPARE_BYTES))

    def writes(*args, **options):
        (tmp_path / "new").write_text("x")

    assert outcome(fails).startswith("error KeyError")
    assert outcome(starts).startswith("code")
    assert outcome(grows).startswith("memory")
    assert outcome(writes).startswith("code open")

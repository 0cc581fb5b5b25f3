import numpy as np
import pytest

from tuckermix.datasets import load
from tuckermix.experiments.draws import DATASETS
from tuckermix.experiments.splits import (
    BY_CLASSES,
    BY_MARK,
    BY_SAMPLES,
    GENERATED,
    REPORTING_ONLY,
    TUNING_CLASSES,
    UNSPLIT,
    part_indices,
    part_seed,
    restrict,
    seen_share,
)

PERSONS = {"pie": 68, "orl": 40, "yaleb": 38}


def persons(name):
    return np.repeat(np.arange(1, PERSONS[name] + 1), 7)


@pytest.mark.parametrize("name", BY_CLASSES)
def test_half_of_the_persons_with_all_their_images_are_for_tuning(name):
    labels = persons(name)
    tuning = part_indices(name, "tuning", labels)
    reporting = part_indices(name, "reporting", labels)
    seen, unseen = set(labels[tuning]), set(labels[reporting])
    assert not seen & unseen
    assert len(seen) == len(unseen) == TUNING_CLASSES[name] == PERSONS[name] // 2
    assert np.array_equal(np.sort(np.concatenate([tuning, reporting])), np.arange(labels.size))
    # Not simply the first half: neighbours in the numbering may be alike.
    assert seen != set(range(1, PERSONS[name] // 2 + 1))


@pytest.mark.parametrize("name", BY_SAMPLES)
@pytest.mark.parametrize("seed", range(3))
def test_half_of_the_images_of_each_class_are_for_tuning(name, seed):
    labels = np.random.default_rng(seed).integers(4, size=501)
    tuning, reporting = (part_indices(name, part, labels) for part in ("tuning", "reporting"))
    assert np.array_equal(np.sort(np.concatenate([tuning, reporting])), np.arange(501))
    for label in range(4):
        counts = [np.sum(labels[part] == label) for part in (tuning, reporting)]
        assert counts[1] - counts[0] in (0, 1)


def test_a_split_is_the_same_each_time_and_on_every_machine():
    labels = persons("pie")
    first = part_indices("pie", "tuning", labels)
    assert np.array_equal(first, part_indices("pie", "tuning", labels.copy()))
    assert sorted(set(labels[first]))[:8] == FIRST_PERSONS


FIRST_PERSONS = [1, 2, 4, 9, 10, 13, 14, 16]


def test_voxels_are_split_as_their_makers_did():
    labels, is_test = np.arange(6) % 2, np.array([0, 1, 0, 0, 1, 1], dtype=bool)
    (name,) = BY_MARK
    assert part_indices(name, "reporting", labels, is_test=is_test).tolist() == [1, 4, 5]
    assert part_indices(name, "tuning", labels, is_test=is_test).tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="The split of 'modelnet10' is the dataset's own"):
        part_indices(name, "tuning", labels)


@pytest.mark.parametrize("name", [*REPORTING_ONLY, *GENERATED])
def test_some_data_are_for_reporting_only(name):
    labels = np.repeat(range(3), 4)
    assert part_indices(name, "reporting", labels).size == 12
    with pytest.raises(ValueError, match=f"'{name}' is for reporting only"):
        part_indices(name, "tuning", labels)


def test_every_dataset_of_the_tables_has_a_split_or_is_said_to_have_none():
    known = {*BY_CLASSES, *BY_SAMPLES, *BY_MARK, *REPORTING_ONLY, *GENERATED}
    assert set(DATASETS) <= known | set(UNSPLIT)
    assert not known & set(UNSPLIT)
    assert all(seen_share(name, np.arange(2), np.arange(2)) is None for name in UNSPLIT)


def test_all_means_all_for_any_data():
    assert part_indices("mine", "all", np.zeros(5)).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="'name' parameter of splits must be one of 'pie'"):
        part_indices("mine", "tuning", np.zeros(5))
    with pytest.raises(ValueError, match="'part' parameter of part_indices must be one of"):
        part_indices("pie", "half", np.zeros(5))


def test_the_share_that_tuning_has_seen():
    labels = persons("orl")
    tuning, reporting = (part_indices("orl", part, labels) for part in ("tuning", "reporting"))
    assert seen_share("orl", tuning, labels) == 1.0
    assert seen_share("orl", reporting, labels) == 0.0
    assert seen_share("orl", np.arange(labels.size), labels) == 0.5
    mixed = np.concatenate([tuning[:3], reporting[:9]])
    assert seen_share("orl", mixed, labels) == 0.25
    assert seen_share("yale", np.arange(8), np.zeros(20)) == 0.0
    assert seen_share("mine", np.arange(8), np.zeros(20)) is None


@pytest.mark.parametrize("part", ["tuning", "reporting"])
def test_a_dataset_is_cut_with_its_labels(part):
    data = load("digits")
    cut = restrict(data, "digits", part)
    chosen = part_indices("digits", part, data.labels)
    assert np.array_equal(cut.X, data.X[chosen])
    assert np.array_equal(cut.labels, data.labels[chosen])
    assert restrict(data, "digits", "all") is data


def test_generated_data_have_other_seeds_for_tuning_than_for_reporting():
    tuning = {part_seed("tuning", number) for number in range(50)}
    reporting = {part_seed("reporting", number) for number in range(50)}
    assert len(tuning) == len(reporting) == 50
    assert not tuning & reporting
    with pytest.raises(ValueError, match="'part' parameter of part_seed must be one of 'tuning'"):
        part_seed("all", 0)


@pytest.mark.data
def test_the_files_have_the_halves_that_the_split_promises(data_home):
    for name, count in TUNING_CLASSES.items():
        data = load(name, data_home)
        parts = [restrict(data, name, part) for part in ("tuning", "reporting")]
        assert [part.n_classes for part in parts] == [count, count]
    voxels = load("modelnet10", data_home)
    reporting = restrict(voxels, "modelnet10", "reporting")
    assert reporting.n_samples == voxels.extra["is_test"].sum() > 0

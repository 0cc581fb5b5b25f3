import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import load
from tuckermix_bench import Experiment, Row, plan
from tuckermix_bench.draws import (
    DATASETS,
    PARTS,
    DatasetEntry,
    changed,
    draw,
    draw_indices,
    part_indices,
    part_seed,
    register_dataset,
    seed_of,
    seen_share,
)

LABELS = np.repeat(np.arange(1, 9), 20)


def divided(split):
    return [entry.name for entry in DATASETS.values() if entry.split == split]


def test_seeds_depend_on_every_part_and_on_nothing_else():
    assert seed_of("table3", "K=4", 0) == seed_of("table3", "K=4", 0)
    seeds = {seed_of(t, r, n) for t in ("table3", "table4") for r in ("K=4", "K=8") for n in (0, 1)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**31 for seed in seeds)
    # Parts do not run together.
    assert seed_of("a", "bc") != seed_of("ab", "c")


def test_a_seed_is_the_same_on_every_machine():
    assert seed_of("table3", "K=4", "samples", 0) == 243613841


@pytest.mark.parametrize("run", range(4))
def test_a_draw_has_the_classes_and_counts_asked_for(run):
    row = Row("a", "x", (2, 2), n_classes=3, per_class=7)
    labels = LABELS[draw_indices(row, "t", run, LABELS)]
    found, counts = np.unique(labels, return_counts=True)
    assert found.size == 3
    assert set(counts) == {7}


@pytest.mark.parametrize(
    ("redraw", "same_classes", "same_samples"),
    [("classes", False, False), ("samples", True, False), ("nothing", True, True)],
)
def test_what_changes_from_run_to_run(redraw, same_classes, same_samples):
    row = Row("a", "x", (2, 2), n_classes=3, per_class=7, redraw=redraw)
    draws = [draw_indices(row, "t", run, LABELS) for run in range(6)]
    classes = {tuple(np.unique(LABELS[indices])) for indices in draws}
    samples = {tuple(np.sort(indices)) for indices in draws}
    assert (len(classes) == 1) is same_classes
    assert (len(samples) == 1) is same_samples


def test_no_sample_is_drawn_twice_and_none_is_left_out_when_all_are_asked_for():
    everything = draw_indices(Row("a", "x", (2, 2)), "t", 0, LABELS)
    assert np.array_equal(np.sort(everything), np.arange(LABELS.size))
    some = draw_indices(Row("a", "x", (2, 2), per_class=19), "t", 0, LABELS)
    assert np.unique(some).size == some.size == 8 * 19


def test_fixed_classes_are_kept():
    row = Row("a", "x", (2, 2), classes=(2, 5), per_class=3)
    assert set(LABELS[draw_indices(row, "t", 1, LABELS)]) == {2, 5}


def test_rows_that_share_a_draw_see_the_same_samples():
    first = Row("a", "x", (2, 2), per_class=5, draw="shared")
    second = Row("b", "x", (2, 2), per_class=5, draw="shared")
    assert np.array_equal(draw_indices(first, "t", 0, LABELS), draw_indices(second, "t", 0, LABELS))


def test_too_many_classes_or_samples_are_refused():
    with pytest.raises(ValueError, match="draws 9 classes, but part 'all' of dataset 'x' has 8"):
        draw_indices(Row("a", "x", (2, 2), n_classes=9), "t", 0, LABELS)
    with pytest.raises(ValueError, match="draws 21 samples of class 1, but part 'all' of dat"):
        draw_indices(Row("a", "x", (2, 2), per_class=21), "t", 0, LABELS)


@pytest.mark.parametrize("run", range(3))
def test_a_row_of_one_part_draws_from_that_part_alone(run):
    digits = DATASETS["digits"]
    rows = {part: Row("a", "digits", (2, 2), per_class=50, part=part) for part in PARTS}
    seen = {part: draw(row, "t", run, entry=digits).seen for part, row in rows.items()}
    assert seen["tuning"] == 1.0
    assert seen["reporting"] == 0.0
    assert 0.3 < seen["all"] < 0.7
    with pytest.raises(ValueError, match="part 'reporting' of dataset 'digits' has"):
        draw(Row("a", "digits", (2, 2), per_class=150, part="reporting"), "t", run, entry=digits)


def test_samples_are_scaled():
    drawn = draw(Row("a", "digits", (2, 2), per_class=30), "t", 0, entry=DATASETS["digits"])
    assert drawn.X.dtype == np.float64
    assert drawn.X.min() == 0.0
    assert drawn.X.max() == 1.0
    assert drawn.X.shape == (300, 8, 8)
    assert drawn.labels.shape == drawn.indices.shape == (300,)


def test_data_without_labels_are_refused(fakes):
    def load(data_home):
        return fakes.Blobs(np.ones((4, 2, 2)), None)

    with pytest.raises(ValueError, match="'bare' has no labels"):
        draw(Row("a", "bare", (2, 2)), "t", 0, entry=DatasetEntry("bare", load))


def test_a_name_is_taken_once(fakes):
    entry = DatasetEntry("blobs", fakes.load_blobs)
    with pytest.raises(ValueError, match="dataset called 'blobs' is already registered"):
        register_dataset(entry)
    assert register_dataset(entry, replace=True) is entry
    assert DATASETS["blobs"] is entry


def test_an_unknown_dataset_is_refused():
    with pytest.raises(ValueError, match="'dataset' parameter of Row must be one of 'pie'"):
        plan(Experiment("mine", "Mine", (Row("a", "unknown", (2, 2)),), ("k-means",)))


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_the_size_that_is_asked_for(seed):
    X = np.random.default_rng(seed).random((40, 16, 16))
    noise = changed(X, {"noise": 2.0}, seed) - X
    assert noise.std() == pytest.approx(2.0 * X.std(), rel=0.03)
    assert abs(noise.mean()) < 0.05 * X.std()
    np.testing.assert_array_equal(changed(X, {"noise": 2.0}, seed), X + noise)


@pytest.mark.parametrize("seed", range(3))
def test_gaps_take_the_share_that_is_asked_for(seed):
    X = np.random.default_rng(seed).random((40, 16, 16))
    found = changed(X, {"missing": 0.3}, seed)
    gaps = np.isnan(found)
    assert gaps.mean() == pytest.approx(0.3, abs=0.02)
    np.testing.assert_array_equal(found[~gaps], X[~gaps])


def test_smaller_images_have_the_means_of_blocks():
    X = np.random.default_rng(0).random((3, 8, 8))
    found = changed(X, {"side": 4}, 0)
    assert found[1, 2, 3] == pytest.approx(X[1, 4:6, 6:8].mean())
    assert found.shape == (3, 4, 4)


@pytest.mark.parametrize("side", [6, 12])
def test_other_sizes_keep_the_picture_in_place(side):
    ramp = np.broadcast_to((np.arange(8) + 0.5) / 8, (2, 8, 8))
    found = changed(ramp, {"side": side}, 0)
    assert found.shape == (2, side, side)
    inner = slice(1, -1)  # the last half pixel has no neighbour beyond it
    expected = (np.arange(side) + 0.5) / side
    np.testing.assert_allclose(found[0, 0, inner], expected[inner], atol=1e-12)


def test_a_changed_row_draws_the_samples_of_the_plain_one():
    plain = Row("a", "digits", (4, 4), n_classes=3, per_class=5)
    noisy = Row("b", "digits", (4, 4), n_classes=3, per_class=5, draw="a", change={"noise": 1.0})
    entry = DATASETS["digits"]
    one, two = (draw(row, "t", 0, entry=entry) for row in (plain, noisy))
    np.testing.assert_array_equal(one.indices, two.indices)
    assert not np.array_equal(one.X, two.X)
    assert not np.array_equal(two.X, draw(noisy, "t", 1, entry=entry).X)


@pytest.mark.data
def test_the_papers_draws_fit_the_files(data_home):
    from tuckermix_bench.tables import EXPERIMENTS

    sizes = {"table1": [1008] * 3, "table2": [1200], "table5": [100, 2414], "beyond": [1008, 2856]}
    for name, expected in sizes.items():
        found = []
        for row in EXPERIMENTS[name].rows[:3]:
            if row.of:
                continue
            drawn = draw(row, name, 0, entry=DATASETS[row.dataset], data_home=str(data_home))
            found.append(drawn.labels.size)
            assert 0.0 <= drawn.X.min() < drawn.X.max() <= 1.0
            assert (drawn.seen == 0.0) is (row.part == "reporting")
        assert found[: len(expected)] == expected


PERSONS = {"pie": 68, "orl": 40, "yaleb": 38}


def persons(name):
    return np.repeat(np.arange(1, PERSONS[name] + 1), 7)


@pytest.mark.parametrize("name", divided("classes"))
def test_half_of_the_persons_with_all_their_images_are_for_tuning(name):
    labels = persons(name)
    tuning = part_indices(name, "tuning", labels)
    reporting = part_indices(name, "reporting", labels)
    seen, unseen = set(labels[tuning]), set(labels[reporting])
    assert not seen & unseen
    assert len(seen) == len(unseen) == DATASETS[name].tuning_classes == PERSONS[name] // 2
    assert np.array_equal(np.sort(np.concatenate([tuning, reporting])), np.arange(labels.size))
    # Not simply the first half: neighbours in the numbering may be alike.
    assert seen != set(range(1, PERSONS[name] // 2 + 1))


@each("name", divided("samples"))
@each("seed", range(3))
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
    name = "modelnet10"
    assert name in divided("mark")
    assert part_indices(name, "reporting", labels, is_test=is_test).tolist() == [1, 4, 5]
    assert part_indices(name, "tuning", labels, is_test=is_test).tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="The split of 'modelnet10' is the dataset's own"):
        part_indices(name, "tuning", labels)


def test_the_even_photographs_of_a_class_are_for_reports():
    labels = np.array([0, 1, 0, 0, 1, 1, 0])
    for name in divided("turns"):
        assert part_indices(name, "reporting", labels).tolist() == [0, 1, 3, 5]
        assert part_indices(name, "tuning", labels).tolist() == [2, 4, 6]


def test_a_row_can_see_the_samples_of_another_table():
    there = draw_indices(Row("a, b", "x", (2, 2), per_class=5), "one", 3, LABELS)
    here = draw_indices(Row("c", "x", (2, 2), per_class=5, draw="one/a, b"), "two", 3, LABELS)
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("name", divided("reporting only"))
def test_some_data_are_for_reporting_only(name):
    labels = np.repeat(range(3), 4)
    assert part_indices(name, "reporting", labels).size == 12
    with pytest.raises(ValueError, match=f"'{name}' is for reporting only"):
        part_indices(name, "tuning", labels)


def test_a_dataset_without_parts_does_not_say_what_choices_have_seen():
    assert {"samson", "planted-3"} <= set(divided(""))
    assert all(seen_share(name, np.arange(2), np.arange(2)) is None for name in divided(""))


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


def test_generated_data_have_other_seeds_for_tuning_than_for_reporting():
    tuning = {part_seed("tuning", number) for number in range(50)}
    reporting = {part_seed("reporting", number) for number in range(50)}
    assert len(tuning) == len(reporting) == 50
    assert not tuning & reporting
    with pytest.raises(ValueError, match="'part' parameter of part_seed must be one of 'tuning'"):
        part_seed("all", 0)


@pytest.mark.data
def test_the_files_have_the_halves_that_the_split_promises(data_home):
    for name in divided("classes"):
        labels, count = load(name, data_home).labels, DATASETS[name].tuning_classes
        for part in ("tuning", "reporting"):
            assert len(set(labels[part_indices(name, part, labels)])) == count

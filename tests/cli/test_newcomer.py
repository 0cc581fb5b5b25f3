"""What people met who used the command line for the first time, each case as they typed it."""

import json
import re
import shutil
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters, read

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def cells():
    """Four kinds of pictures, 12 × 10, as bytes, and their kinds."""
    data = make_tensor_clusters(40, (12, 10), 4, noise=0.05, random_state=0)
    low, high = data.X.min(), data.X.max()
    return np.rint(255 * (data.X - low) / (high - low)).astype(np.uint8), data.labels


def pictures(folder, X, deep=()):
    folder.mkdir()
    for index, picture in enumerate(X):
        picture = picture.astype(np.uint16) * 257 if index in deep else picture
        Image.fromarray(picture).save(folder / f"{index:02d}.png")
    return folder


# --- results are never replaced in silence ------------------------------------------------------


def test_inputs_that_differ_behind_a_dot_have_folders_of_their_own(run, desk, cells):
    X, _ = cells
    pictures(desk / "drug_0.1uM", X[:20])
    pictures(desk / "drug_0.5uM", X[20:])
    for name in ("drug_0.1uM", "drug_0.5uM"):
        assert run("cluster", name, "-k", 2, "-q")[0] == 0
    assert (desk / "drug_0.1uM-clusters" / "labels.csv").is_file()
    assert (desk / "drug_0.5uM-clusters" / "labels.csv").is_file()


def test_results_are_replaced_only_when_asked_for(run, fails, desk, cells):
    np.save("scans.npy", cells[0])
    words = ("cluster", "scans.npy", "-k", 4, "-q")
    assert run(*words)[0] == 0
    before = (desk / "scans.npy-clusters" / "labels.csv").stat().st_mtime_ns
    assert "add --force to replace them" in fails(*words)
    assert (desk / "scans.npy-clusters" / "labels.csv").stat().st_mtime_ns == before
    assert run(*words, "--force")[0] == 0
    labels = ("predict", "scans.npy-clusters/model.tuckermix", "scans.npy", "-q", "-o", "new.csv")
    assert run(*labels)[0] == 0
    assert "new.csv is there already" in fails(*labels)
    assert run(*labels, "--force")[0] == 0


def test_the_folder_at_hand_is_called_by_its_name(run, desk, cells, monkeypatch):
    monkeypatch.chdir(pictures(desk / "holiday", cells[0]))
    assert run("cluster", ".", "-k", 4, "-q")[0] == 0
    report = Path("..", "holiday-clusters", "report.html").read_text()  # not among the pictures
    assert "<title>Clusters in holiday</title>" in report


# --- wrong answers that look right ---------------------------------------------------------------


def test_bit_depths_are_not_clustered(run, desk, cells, summary):
    X, y = cells
    pictures(desk / "mixed", X, deep=range(0, 40, 3))
    np.save("y.npy", y)
    for scale in ("auto", "sample"):
        words = ("-k", 4, "--truth", "y.npy", "--scale", scale, "-o", scale)
        code, _, err = run("cluster", "mixed", *words)
        assert code == 0
        assert ("values of type uint16 and uint8" in err) == (scale == "auto")
        assert summary(desk / scale)["accuracy"] > 0.95


@pytest.mark.parametrize("sign", [";", "\t", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tables_of_classes_as_spreadsheets_write_them(run, desk, cells, summary, sign, encoding):
    X, y = cells
    pictures(desk / "cells", X)
    # Some rows are missing, and names have no ending.
    rows = [f"{index:02d}{sign}kind {label}" for index, label in enumerate(y) if index % 5]
    table = "\n".join([f"name{sign}cell type", *rows])
    (desk / "semi.csv").write_text(table, encoding=encoding)
    code, _, err = run("cluster", "cells", "-k", 4, "--truth", "semi.csv:cell type")
    assert code == 0
    assert "the class of 8 samples is not known" in err
    values = summary(desk / "cells-clusters")
    assert (values["n_known"], values["n_samples"]) == (32, 40)
    assert values["accuracy"] > 0.95


def test_what_is_named_as_truth_is_no_candidate_for_samples(run, desk, cells, summary):
    from scipy.io import savemat

    X, y = cells
    savemat("v5.mat", {"scan": X.astype(float), "subject": y[:, None].astype(float)})
    assert run("cluster", "v5.mat", "-k", 4, "--truth", "subject", "-q")[0] == 0
    assert summary(desk / "v5.mat-clusters")["accuracy"] > 0.95


def test_a_note_says_which_axis_was_taken(run, desk):
    from scipy.io import savemat

    cube = np.random.default_rng(0).random((14, 8, 10))
    np.save("cube.npy", cube)
    savemat("cube.mat", {"cube": cube})
    _, _, err = run("cluster", "cube.npy", "-k", 2)
    assert "14 samples of shape 8 × 10" in err
    code, out, err = run("cluster", "cube.mat", "-k", 2, "--json")
    assert code == 0
    assert "10 samples of shape 14 × 8" in err
    assert "along axis 2, the last, as MATLAB stacks them: set --sample-axis=0" in err
    assert "--sample-axis=0" in json.loads(out)["notes"][0]
    _, _, err = run("cluster", "cube.mat", "-k", 2, "--sample-axis=0", "--force")
    assert "14 samples of shape 8 × 10" in err
    assert "note:" not in err


def test_a_broken_file_is_skipped_and_listed(run, fails, desk, cells, summary):
    pictures(desk / "photos", cells[0])
    whole = (desk / "photos" / "05.png").read_bytes()
    (desk / "photos" / "05.png").write_bytes(whole[: len(whole) // 2])
    code, _, err = run("cluster", "photos", "-k", 4)
    assert code == 0
    assert "39 samples of shape 12 × 10" in err
    assert "1 file was skipped, as it could not be read:\n  05.png: it is damaged" in err
    (skipped,) = summary(desk / "photos-clusters")["skipped"]
    assert skipped["name"] == "05.png"
    assert "05.png" not in (desk / "photos-clusters" / "labels.csv").read_text()
    page = (desk / "photos-clusters" / "report.html").read_text()
    assert re.search("1 file was not read.*05[.]png.*It is damaged", page, re.DOTALL)
    words = ("cluster", "photos", "-k", 4, "-o", "other", "-q", "--on-error", "stop")
    assert "Cannot read photos/05.png: it is damaged" in fails(*words)
    words = (*words[:-1], "carry on")
    assert "--on-error must be stop or skip. Got 'carry on'." in fails(*words)


@pytest.mark.parametrize("how", ["mp4", "npy", "axes"])
def test_a_video_is_drawn_as_frames(run, desk, how, page_value):
    rng = np.random.default_rng(0)
    words = []
    if how == "mp4":
        av = pytest.importorskip("av", reason="av is not installed")
        with av.open("a.mp4", "w") as container:
            stream = container.add_stream("mpeg4", rate=5)
            stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
            for frame in rng.integers(0, 256, (80, 32, 32, 3), dtype=np.uint8):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode())
        name, words = "a.mp4", ["--frames", "8", "--grey", "--size", "12"]
    else:
        name = "clips.npy"
        np.save(name, rng.random((10, 8, 12, 12)))
        words = ["--kind", "video"] if how == "npy" else ["--axes", "NTYX"]
    assert run("cluster", name, "-k", 2, "-q", *words)[0] == 0
    data, films = (page_value(desk / f"{name}-clusters", part) for part in ("data", "films"))
    assert (data["kind"], data["frames"]) == ("video", 8)  # frames over time, not three slices
    assert len(films) == 10


# --- messages in the words of the command line ---------------------------------------------------


def test_messages_name_files_and_options(fails, desk, cells):
    X, _ = cells
    np.save("ok.npy", X)
    assert "--truth nofile.csv: there is no such file" in fails(
        "cluster", "ok.npy", "-k", 4, "--truth", "nofile.csv"
    )
    assert "TARGETS must be one of 'table1'" in fails("reproduce", "table9")
    assert "Did you mean 'cluster'? Try" in fails("clustr")


def test_images_that_differ_are_made_alike_and_it_is_said(run, desk, cells, summary):
    """Sizes and colours differ: the bare command works, and each assumption names its option."""
    pictures(desk / "mixed", cells[0])
    with Image.open(desk / "mixed" / "00.png") as image:
        image.resize((15, 18)).convert("RGB").save(desk / "mixed" / "01.png")
    code, _, err = run("cluster", "mixed", "-k", 4)
    assert code == 0
    told = [line.removeprefix("note: ") for line in err.splitlines() if line.startswith("note:")]
    assert told == summary(desk / "mixed-clusters")["notes"]
    sizes, colours = told
    assert "18 × 15 were scaled and cropped to 12 × 10. To change this: --size HEIGHTx" in sizes
    assert "1 of 40 files are in colour" in colours
    assert colours.endswith("To change this: --grey.")
    words = ("--grey", "--size", "12x10", "-o", "alike")
    code, _, err = run("cluster", "mixed", "-k", 4, *words)
    assert code == 0
    assert "note:" not in err


def test_new_pictures_of_any_kind_are_read_as_the_model_was(run, desk, cells):
    X, _ = cells
    pictures(desk / "photos", X)
    assert run("cluster", "photos", "-k", 4, "-q")[0] == 0
    (desk / "new").mkdir()
    for index, picture in enumerate(X[:8]):
        large = Image.fromarray(picture).resize((300, 360), Image.Resampling.NEAREST)
        large.convert("RGB").save(desk / "new" / f"{index}.png")
    _, old, _ = run("predict", "photos-clusters", "photos", "-q")
    code, new, _ = run("predict", "photos-clusters", "new", "-q")
    assert code == 0

    def labels(text):
        return [line.split(",")[1] for line in text.splitlines()[1:9]]

    assert labels(new) == labels(old)


def test_columns_without_numbers_and_a_command_that_leaves_them_out(run, fails, desk):
    rows = [f"{n},{n * n},Rome,2020-01-{n + 10}" for n in range(20)]
    (desk / "t.csv").write_text("\n".join(["a,b,city,day", *rows]))
    told = fails("cluster", "t.csv", "-k", 2)
    assert "'city' (texts such as 'Rome'), 'day' (dates such as '2020-01-10')" in told
    assert "Leave them out with --drop city,day, write them as numbers" in told
    code, _, err = run("cluster", "t.csv", "-k", 2, "--drop", "city,day")
    assert code == 0
    assert "To keep the values: --scale none." in err
    assert run("predict", "t.csv-clusters", "t.csv", "-q")[0] == 0


def test_images_of_a_table_open_from_the_page(run, desk, cells):
    pictures(desk / "shots", cells[0])
    rows = "".join(f"shots/{index:02d}.png\n" for index in range(40))
    (desk / "list.csv").write_text("path\n" + rows)
    assert run("cluster", "list.csv", "-k", 4, "-o", "deep/out", "-q")[0] == 0
    page = (desk / "deep" / "out" / "report.html").read_text()
    assert '"base": "../../"' in page
    assert '"unlinked": []' in page
    assert "shots/07.png" in page


def test_a_folder_of_results_stands_for_its_model(run, fails, desk, cells):
    pictures(desk / "photos", cells[0])
    assert run("cluster", "photos", "-k", 4, "-q")[0] == 0
    _, whole, _ = run("predict", "photos-clusters/model.tuckermix", "photos", "-q")
    assert run("predict", "photos-clusters", "photos", "-q")[1] == whole
    assert "photos is a folder without a model.tuckermix" in fails("predict", "photos", "photos")


def test_a_picture_too_large_is_not_called_damaged(fails, desk, cells):
    pictures(desk / "photos", cells[0][:2])
    for file in (desk / "photos").iterdir():
        content = bytearray(file.read_bytes())
        struct.pack_into(">2I", content, 16, 20_000, 20_000)  # the size that its head declares
        struct.pack_into(">I", content, 29, zlib.crc32(content[12:29]))
        file.write_bytes(content)
    told = fails("cluster", "photos", "-k", 2)
    most = 2 * Image.MAX_IMAGE_PIXELS
    assert f"it has more than {most} pixels, where Pillow stops. Make it smaller." in told


def test_gaps_are_told_with_the_file_and_the_option(run, desk, cells):
    X = cells[0].astype(float)
    X[3, 2, 2] = np.nan
    np.save("gaps.npy", X)
    code, _, err = run("cluster", "gaps.npy", "-k", 4, "-q")
    assert code == 2
    assert err.startswith("tuckermix: gaps.npy contains NaN")
    assert "sample 3 is the first of 1. Set --missing impute" in err
    assert run("cluster", "gaps.npy", "-k", 4, "-q", "--missing", "impute")[0] == 0


def test_half_precision_is_computed_in_single(run, desk, cells, summary):
    np.save("half.npy", cells[0].astype(np.float16))
    assert run("cluster", "half.npy", "-k", 4, "-q")[0] == 0
    assert summary(desk / "half.npy-clusters")["dtype"] == "float32"


def test_a_folder_that_cannot_be_made_is_told(fails, desk, cells, monkeypatch):
    np.save("ok.npy", cells[0])
    (desk / "file").write_text("no folder")
    told = fails("cluster", "ok.npy", "-k", 4, "-o", "file/x", "-q")
    assert "Cannot write to file/x: not a directory. Name another folder." in told

    def refuse(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    told = fails("cluster", "ok.npy", "-k", 4, "-o", "locked/x", "-q")
    assert "Cannot write to locked/x: permission denied. Name another folder." in told


def test_the_help_can_be_read(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("cluster", "--help")
    assert "Usage: tuckermix cluster [OPTIONS] INPUT\n" in out
    assert "\\b" not in out
    assert max(map(len, out.splitlines())) <= 80


# --- what programs read --------------------------------------------------------------------------


def test_settings_have_types(run, desk, cells):
    np.save("ok.npy", cells[0])
    _, out, _ = run("cluster", "ok.npy", "-k", 4, "--tol", "1e-4", "--json", "-q")
    settings = json.loads(out)["settings"]
    assert settings["tol"] == 1e-4
    assert settings["n_clusters"] == 4
    assert settings["ranks"] is None


# --- the report ----------------------------------------------------------------------------------


def test_classes_are_shown_for_many_clusters(run, desk):
    data = make_tensor_clusters(130, (6, 5), 10, random_state=0)
    np.save("many.npy", data.X)
    np.save("y.npy", data.labels)
    assert run("cluster", "many.npy", "-k", 60, "-q", "--truth", "y.npy")[0] == 0
    page = (desk / "many.npy-clusters" / "report.html").read_text()
    assert page.count('<th scope="row">') >= 10
    assert "Clusters against known classes" in page


def test_ticks_of_the_cost_differ(run, desk):
    X = 1e4 * make_tensor_clusters(60, (8, 7), 3, noise=0.5, random_state=0).X  # costs of 1e8
    np.save("large.npy", X)
    assert run("cluster", "large.npy", "-k", 3, "-q")[0] == 0
    page = (desk / "large.npy-clusters" / "report.html").read_text()
    charts = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert charts
    for chart in charts:
        ticks = re.findall(r'<text class="y"[^>]*>([^<]+)</text>', chart)
        assert len(set(ticks)) == len(ticks) >= 2


def test_headings_keep_what_they_head_in_print(run, desk, cells):
    np.save("cells.npy", cells[0])
    assert run("cluster", "cells.npy", "-k", 4, "-q")[0] == 0
    page = (desk / "cells.npy-clusters" / "report.html").read_text()
    in_print = page[page.index("@media print") :]
    assert re.search(r"\bh2\b[^}]*\{[^}]*break-after: avoid", in_print)
    assert re.search(r"\.cluster\b[^}]*\{[^}]*break-inside: avoid", in_print)


# --- fits beside each other ----------------------------------------------------------------------


def test_fits_in_threads_give_the_libraries_their_threads_back(cells):
    pool = pytest.importorskip("threadpoolctl")
    X = cells[0].astype(float)

    def numbers():
        return [
            info["num_threads"] for info in pool.threadpool_info() if info["user_api"] == "blas"
        ]

    with pool.threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(4) as threads:
        before = numbers()
        models = [TuckerClustering(4, random_state=0) for _ in range(8)]
        fitted = list(threads.map(lambda model: model.fit(X), models))
        assert numbers() == before
    assert all(np.array_equal(model.labels_, fitted[0].labels_) for model in fitted)


# --- documentation -------------------------------------------------------------------------------


def test_the_landing_page_has_a_picture():
    landing = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    (picture,) = re.findall(r"^\.\. image:: (\S+)", landing, re.MULTILINE)[:1]
    assert (ROOT / "docs" / picture).stat().st_size > 0


def test_pages_install_from_where_the_package_can_be_had():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]
    for page in pages:
        for line in page.read_text(encoding="utf-8").splitlines():
            found = re.search(r"pip install.*?[\s\"'`](tuckermix\b\S*)", line)
            assert not found or "@ git+" in line, f"{page.name}: {line}"


def test_the_api_index_has_every_public_part():
    index = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
    for part in ("labels", "persistence", "datasets", "features"):
        assert re.search(rf"^   {part}$", index, re.MULTILINE)


def test_the_same_cube_can_be_read_the_same_way(desk):
    from scipy.io import savemat

    cube = np.random.default_rng(0).random((14, 8, 10))
    np.save("cube.npy", cube)
    savemat("cube.mat", {"cube": cube})
    for options in ({"sample_axis": 0}, {"axes": "NYX"}, {"axes": "YXN"}):
        assert np.array_equal(read("cube.npy", **options).X, read("cube.mat", **options).X)
    shutil.copy("cube.npy", "again.npy")
    assert np.array_equal(read("again.npy").X, cube)

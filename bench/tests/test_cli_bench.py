import json


def test_bench_prints_a_table(run):
    code, out, _ = run("bench", "--n-samples", 60, "-k", 3)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [
        "method",
        "KMeans,",
        "decompose,",
        "TuckerClustering,",
    ]


def test_bench_as_json(run):
    code, out, _ = run("bench", "--n-samples", 60, "-k", 3, "--json", "-q")
    assert code == 0
    results = json.loads(out)["results"]
    assert all(one["seconds"] > 0 for one in results)
    assert results[2]["accuracy"] > 0.9

import os
import subprocess
import sys

import numpy as np
import pytest

from tuckermix._machine import _group_limit, available_memory, default_limit


def test_the_limit_follows_the_machine(monkeypatch):
    assert 2**20 < default_limit() < available_memory()
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.setattr("tuckermix._machine._group_limit", lambda: 0)
    assert default_limit() == 4 * 2**30


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b\n", {"a/memory.max": "1000", "a/b/memory.max": "max"}, 1000),
        ("0::/a/b\n", {"memory.max": "3000", "a/b/memory.max": "2000"}, 2000),
        ("0::/\n", {"memory.max": "500"}, 500),
        ("4:memory:/a\n2:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "700"}, 700),
        ("0::/../..\n", {}, 0),
    ],
)
def test_the_limit_follows_the_container(tmp_path, groups, files, expected):
    (tmp_path / "groups").write_text(groups)
    for name, content in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(content)
    assert _group_limit(tmp_path / "groups", tmp_path / "root") == expected


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited on Linux only")
def test_the_limit_follows_the_shell(tmp_path):
    """With `ulimit -v`, a file is refused before memory runs out, and read in pieces."""
    np.lib.format.open_memmap(tmp_path / "a.npy", "w+", "f8", (2**17, 2**11))  # all holes
    code = (
        "import resource, sys; from tuckermix._machine import available_memory\n"
        "from tuckermix.datasets import ReadError, read\n"
        "import dask.array\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "assert available_memory() == 2**31\n"
        "for options in ({}, {'lazy': True}, {'max_bytes': 2**32}):\n"
        "    try: read(sys.argv[1], **options)\n"
        "    except ReadError as error: print(error)\n"
        "X = read(sys.argv[1], chunks=100).X\n"
        "print(X[:100].compute(scheduler='synchronous').shape)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "the limit is max_bytes=1073741824" in lines[0]
    for line in lines[1:3]:
        assert "its content does not fit into memory. Pass chunks=100" in line
        assert "(ulimit -v)" in line
        assert "damaged" not in line
    assert lines[3] == "(100, 2048)"

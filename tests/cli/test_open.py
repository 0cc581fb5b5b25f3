"""The server of a report that holds not all of its pictures."""

import http.client
import re
import threading
from urllib.parse import urlsplit

import pytest

from tuckermix.cli import _earlier
from tuckermix.cli.open import ReportServer
from tuckermix.report import files_below


@pytest.fixture
def server(clustered):
    """Serve the page of the clustered pictures as if it held none of them."""
    page = (clustered / "report.html").read_text()
    earlier = _earlier.read_results(clustered)
    server = ReportServer(page, files_below(earlier.roots, earlier.names))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, path, method="GET", **headers):
    """Return status, headers and content of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_a_report_with_all_pictures_needs_no_server(run, clustered):
    code, out, _ = run("open", clustered, "--no-browser")
    assert code == 0
    assert out.strip() == (clustered / "report.html").resolve().as_uri()


def test_pictures_come_from_their_files_without_their_data(server):
    root = urlsplit(server.address).path
    status, headers, page = ask(server, root)
    assert status == 200
    assert b'data-served="1"' in page
    assert b"img-src data: 'self';" in page
    assert headers["Referrer-Policy"] == "no-referrer"
    status, headers, content = ask(server, f"{root}p/3/400")
    assert status == 200
    assert headers["Content-Type"] in ("image/png", "image/webp")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert content[:4] in (b"\x89PNG", b"RIFF")


@pytest.mark.parametrize(
    "path",
    ["", "/", "/x/", "{}p/999/100", "{}p/0/9", "{}p/-1/100", "{}../x", "{}p/0/400?x",
     "{}model.tuckermix", "{}%2e%2e/%2e%2e/etc/passwd", "/wrong/p/0/100"],
)  # fmt: skip
def test_nothing_else_is_served(server, path):
    path = path.format(urlsplit(server.address).path)
    assert ask(server, path or "//")[0] == 404


def test_others_are_kept_out(server):
    root = urlsplit(server.address).path
    assert server.server_address[0] == "127.0.0.1"
    assert len(re.sub(r"\W", "", root)) > 28
    assert ask(server, root, Host="evil.example")[0] == 404  # a name that leads to this machine
    assert ask(server, root, "POST")[0] == 501
    assert ask(server, root, "HEAD")[0] == 501


def test_a_file_that_cannot_be_read_has_no_picture(clustered, tmp_path):
    (tmp_path / "broken.png").write_bytes(b"\x89PNG nothing")
    with ReportServer("", [tmp_path / "broken.png", None]) as server:
        assert server.picture(0, 100) is None
        assert server.picture(1, 100) is None
        assert server.picture(2, 100) is None

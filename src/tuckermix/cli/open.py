"""``tuckermix open``: the report in a browser, with a server where its pictures are too many."""

from __future__ import annotations

import hmac
import re
import secrets
import sys
import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console

HOST = "127.0.0.1"

HEAD = re.compile(r'<html lang="en" data-left="(\d+)">')
"""The start of a report, which says how many pictures it has no room for."""

ASKED = re.compile(r"/([\w-]+)/(?:p/(\d{1,9})/(\d{2,4}))?")
"""An address of the server: the token, and for a picture its sample and longest side."""

MOST_SIDE = 2048

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer: the browser guesses nothing and tells nobody."""


def open_report(
    result: options.Argument,
    browser: Annotated[bool, typer.Option("--browser/--no-browser")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    quiet: options.Quiet = False,
) -> int:
    """Open the report of a result in the browser.

    Where it holds all its pictures, that is all. Else a small server shows the others from their
    files, to this machine only and to nobody without the address, until Ctrl-C ends it.

    Parameters
    ----------
    browser
        Start a browser, or only say where.
    port
        The port of the server; 0 takes a free one.
    """
    from tuckermix.cli import _earlier, _results
    from tuckermix.report import files_below

    console = Console(quiet)
    earlier = _earlier.read_results(result)
    path = result / _results.REPORT
    page = path.read_text(encoding="utf-8")
    head = HEAD.search(page[:4096])
    files = files_below(earlier.roots, earlier.names or ())
    if head is None or head[1] == "0" or not any(files):
        _show(path.resolve().as_uri(), browser)
        return 0
    with ReportServer(page, files, port) as server:
        _show(server.address, browser)
        console.note("The report is served until you press Ctrl-C.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.note("Closed.")
    return 0


def _show(address: str, browser: bool) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()
    if browser:
        webbrowser.open(address)


class ReportServer(ThreadingHTTPServer):
    """Serves one page, and pictures by number, to those who know the token.

    No path of a file is in any address. What is sent of a picture are its pixels, made small by the
    process that opens files.

    Parameters
    ----------
    page : str
        The report.
    files : list of (Path or None)
        The picture file of each sample.
    port : int, default=0
        0 takes a free one.
    """

    daemon_threads = True

    def __init__(self, page: str, files: list[Path | None], port: int = 0):
        from tuckermix._machine import default_limit
        from tuckermix._sandbox import Sandbox

        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.address = f"http://{HOST}:{self.server_port}/{self.token}/"
        page = HEAD.sub('<html lang="en" data-served="1">', page, count=1)
        self.page = page.replace("; img-src data:;", "; img-src data: 'self';", 1).encode()
        self.files = files
        self.sandbox, self.lock = Sandbox(default_limit()), threading.Lock()

    def picture(self, place: int, side: int) -> tuple[bytes, str] | None:
        """Return the picture of a sample as a file and its media type, or None."""
        from tuckermix.report import encoded, small_pictures

        path = self.files[place] if place < len(self.files) else None
        if path is None:
            return None
        with self.lock:
            (picture,) = small_pictures([path], min(side, MOST_SIDE), self.sandbox)
        return None if picture is None else encoded(picture)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away."""


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the page and for pictures, and nothing else."""

    server: ReportServer
    server_version, sys_version = "tuckermix", ""

    def do_GET(self) -> None:
        """Send the page or a picture, or 404 to anybody without the token."""
        found = ASKED.fullmatch(self.path)
        here = self.headers.get("Host") == f"{HOST}:{self.server.server_port}"
        sent = None
        if here and found and hmac.compare_digest(found[1], self.server.token):
            sent = (self.server.page, "text/html; charset=utf-8")
            if found[2] is not None:
                sent = self.server.picture(int(found[2]), int(found[3]))
        if not found or sent is None:
            self.send_error(404)
            return
        content, kind = sent
        kept = "private, max-age=3600" if found[2] else "no-store"
        sizes = {"Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": kept}
        self.send_response(200)
        for name, value in (sizes | HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: Any) -> None:
        """Write no line for each request."""

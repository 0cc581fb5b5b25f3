"""The documentation tells the truth: its examples run, and docstrings agree with signatures."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tuckermix

ROOT = Path(__file__).resolve().parent.parent

# What a docstring need not list, and sections that end the list of parameters.
UNLISTED = {"self", "cls"}
VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def _public() -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes of the package, by the name a user imports."""
    for name in tuckermix.__all__:
        value = getattr(tuckermix, name)
        members = (
            [(f"{name}.{key}", getattr(value, key)) for key in value.__all__]
            if inspect.ismodule(value)
            else [(name, value)]
        )
        yield from ((key, member) for key, member in members if callable(member))


def _callables() -> Iterator[tuple[str, Any, str]]:
    """Yield public functions, classes and their own methods, each with its docstring."""
    for name, value in _public():
        yield name, value, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for key, method in vars(value).items():
                if not key.startswith("_") and inspect.isfunction(method):
                    yield f"{name}.{key}", method, inspect.getdoc(method) or ""


def _documented(docstring: str) -> dict[str, str] | None:
    """Return the types of the parameters that a docstring lists, or None if it lists none."""
    parts = SECTION.split(docstring)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if "Parameters" not in sections:
        return None
    found = re.findall(r"^([\w*, ]+) : (.*)$", sections["Parameters"], re.MULTILINE)
    return {name.strip(" *"): kind for names, kind in found for name in names.split(",")}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_a_page_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    inside = [link for link in links if not link.startswith("http")]
    assert [link for link in inside if not (ROOT / link).exists()] == []


def test_examples_in_docstrings_run():
    modules = {inspect.getmodule(value) for _, value in _public()}
    results = {m.__name__: doctest.testmod(m) for m in modules if m.__name__ != "builtins"}
    assert {name: result.failed for name, result in results.items() if result.failed} == {}
    assert sum(result.attempted for result in results.values()) > 0


def test_everything_public_has_a_docstring():
    missing = [name for name, _, docstring in _callables() if not docstring]
    assert missing == []


def test_docstrings_list_the_parameters_of_the_signature():
    wrong = []
    for name, value, docstring in _callables():
        documented = _documented(docstring)
        if documented is None:
            continue
        parameters = inspect.signature(value).parameters.values()
        every = {p.name for p in parameters} - UNLISTED
        needed = {p.name for p in parameters if p.kind not in VARIADIC} - UNLISTED
        if not needed <= set(documented) <= every:
            wrong.append((name, sorted(needed ^ set(documented))))
    assert wrong == []


def test_docstrings_state_the_defaults_of_the_signature():
    wrong = []
    for name, value, docstring in _callables():
        documented = _documented(docstring)
        if documented is None:
            continue
        for key, parameter in inspect.signature(value).parameters.items():
            match = re.search(r"default=(.+)$", documented.get(key, ""))
            has_default = parameter.default is not inspect.Parameter.empty
            if key not in documented or documented[key] == "Ignored":
                continue  # scikit-learn's words for `y`
            if bool(match) != has_default:
                wrong.append((name, key, "stated" if match else "not stated"))
            elif match and not _same(match[1], parameter.default, value):
                wrong.append((name, key, match[1], parameter.default))
    assert wrong == []


def _same(stated: str, default: Any, value: Any) -> bool:
    """Compare a default as written in a docstring, a literal or a constant of its module."""
    stated = stated.strip().strip("`")
    try:
        literal = ast.literal_eval(stated)
    except (SyntaxError, ValueError):
        return getattr(importlib.import_module(value.__module__), stated, None) == default
    return literal == default or (literal is default is None)

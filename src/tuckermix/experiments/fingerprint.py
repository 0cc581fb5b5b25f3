"""A fingerprint of the code behind a method, so that records of older code can be told apart."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["code_fingerprint"]

PACKAGE = "tuckermix"
DIGITS = 12
"""Hexadecimal digits of a fingerprint: far more than enough to tell versions of one file apart."""
HARNESS = f"{PACKAGE}.experiments"
"""The runner itself changes no number of a method, so it is left out."""


def _path_of(module: str) -> Path | None:
    """Return the source file of a module of this package, without importing it."""
    root = importlib.util.find_spec(PACKAGE)
    if root is None or root.origin is None:
        return None
    base = Path(root.origin).parent.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part
                for part in body
                if not (
                    isinstance(part, ast.Expr)
                    and isinstance(part.value, ast.Constant)
                    and isinstance(part.value.value, str)
                )
            ]
    return tree


def _imports(tree: ast.Module) -> set[str]:
    """Return the modules of this package that a source file names in its imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.startswith(f"{PACKAGE}.")}


@cache
def _module_fingerprint(module: str) -> str:
    """Digest the code of a module and of all modules of this package that it leads to."""
    pending, texts = [module], {}
    while pending:
        name = pending.pop()
        path = _path_of(name)
        if name in texts or path is None or name.startswith(HARNESS):
            continue
        tree = _without_docstrings(ast.parse(path.read_text(encoding="utf-8")))
        texts[name] = ast.dump(tree)
        pending.extend(_imports(tree))
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\n{texts[name]}\n".encode())
    return digest.hexdigest()[:DIGITS]


def _class_module(module: str, name: str) -> str:
    """Follow a package's own import of `name` to the module that defines it."""
    path = _path_of(module)
    if path is None:
        return module
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = {alias.asname or alias.name for alias in node.names}
            if name in names:
                return node.module
    return module


def code_fingerprint(factory: str | Callable[..., Any]) -> str:
    """Return a digest of the code that a method runs, comments and docstrings left out.

    Parameters
    ----------
    factory : str or callable
        What builds the method: "module:Class" or a function.

    Returns
    -------
    digest : str
        For a class of this package, of its module and all modules of this package that it imports,
        directly or not; for a function, of its own source; empty where there is none.
    """
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        return _module_fingerprint(_class_module(module, name))
    try:
        source = inspect.getsource(factory)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:DIGITS]

"""Parameters and their descriptions, each written once: inherited, or shared by functions."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from inspect import cleandoc
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

SECTION = re.compile(
    r"^(Parameters|Attributes|Returns|Yields|Raises|See Also|Notes|References|Examples)\n-+\n", re.M
)

FIT = """
Parameters
----------
X : array of shape (n_samples, d_1, ...)
    The samples.
y : Ignored
    Present for scikit-learn's sake.

Returns
-------
self : object
    The fitted estimator.
"""
"""What methods share that learn from samples."""

PREDICT = """
Parameters
----------
X : array of shape (n_samples, d_1, ...)
    Samples of the shape on which the model was fitted.
"""
"""What methods share that are asked about further samples."""

LABELS = f"""{PREDICT}
Returns
-------
labels : array of shape (n_samples,)
    Labels from 0 to ``n_clusters - 1``; -1 for outliers with ``outliers="label"``.
"""

SOFT_LABELS = f"""{PREDICT}
Returns
-------
probabilities : array of shape (n_samples, n_clusters)
    Rows that sum to one; the label is the position of the largest entry.
"""


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def declare(estimator: Class) -> Class:
    """Make an estimator of a class whose annotated attributes are its parameters.

    The constructor takes the parameters of the class and of its bases and stores them, which is
    what scikit-learn asks for. The docstring is completed by what the bases say on parameters and
    attributes that it does not describe itself; a default is always that of the class.

    Parameters
    ----------
    estimator : type
        The class, with annotations and defaults of its own parameters only.

    Returns
    -------
    estimator : type
        The same class.
    """
    dataclass(eq=False, repr=False, match_args=False, kw_only=True)(estimator)
    estimator.__doc__ = _complete(estimator)
    return estimator


def describe(common: str | Callable[..., Any]) -> Callable[[Function], Function]:
    """Complete the docstring of a function by descriptions that it shares with others.

    Parameters
    ----------
    common : str or callable
        Sections of parameters and of what is returned, in the form of numpydoc, or a function whose
        docstring has them. A parameter of the function that its own docstring does not describe is
        described as here; what it returns too, where its own docstring says nothing of that.

    Returns
    -------
    decorator : callable
        Takes the function and returns it, its docstring whole: `help` and Sphinx see no difference.
    """
    shared = _sections(common if isinstance(common, str) else common.__doc__ or "")

    def complete(function: Function) -> Function:
        own = _sections(function.__doc__ or "")
        entries = [_entries(part.get("Parameters", "")) for part in (shared, own)]
        texts = {
            name.strip(" *"): text
            for part in entries
            for names, text in part.items()
            for name in names.split(",")  # such as "n_rows, n_columns : int"
        }
        named = [name for name in inspect.signature(function).parameters if name in texts]
        own["Parameters"] = "\n".join(dict.fromkeys(texts[name] for name in named))
        if "Yields" not in own:
            own.setdefault("Returns", shared.get("Returns", ""))
        function.__doc__ = _joined(own, ["", "Parameters", "Returns"])
        return function

    return complete


def _complete(cls: Any) -> str:
    """Return the docstring with the inherited entries."""
    own = _sections(cls.__doc__ or "")
    inherited = [_sections(base.__doc__) for base in cls.__bases__ if _declared(base)]
    parameters = _entries(own.get("Parameters", ""))
    inherits_first = "n_clusters" not in parameters
    attributes: dict[str, str] = {}
    for sections in inherited:
        for name, text in _entries(sections.get("Parameters", "")).items():
            parameters.setdefault(name, text)
        attributes = {**attributes, **_entries(sections.get("Attributes", ""))}
    attributes |= _entries(own.get("Attributes", ""))
    known = {entry.name: entry for entry in fields(cls)}
    first = [name for name in ("n_clusters",) if inherits_first and name in parameters]
    listed = [*first, *(name for name in parameters if name in known and name not in first)]
    own["Parameters"] = "\n".join(_with_default(parameters[name], known[name]) for name in listed)
    own["Attributes"] = "\n".join(attributes.values())
    return _joined(own, ["", "Parameters", "Attributes"])


def _joined(sections: dict[str, str], first: list[str]) -> str:
    """Put a docstring together from its sections."""
    texts = {title: sections.get(title, "").strip() for title in dict.fromkeys([*first, *sections])}
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{text}" if title else text
        for title, text in texts.items()
        if text
    )


def _declared(base: type) -> bool:
    return "__dataclass_fields__" in vars(base) and bool(base.__doc__)


def _sections(docstring: str) -> dict[str, str]:
    """Split a docstring in the form of numpydoc; what stands before all titles has the title ""."""
    parts = SECTION.split(cleandoc(docstring))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _entries(section: str) -> dict[str, str]:
    """Split a section into its entries by name."""
    texts = [text.rstrip() for text in re.split(r"^(?=\S)", section, flags=re.M) if text.strip()]
    return {text.partition(" : ")[0]: text for text in texts}


def _with_default(text: str, entry: Field[Any]) -> str:
    """Return the description of a parameter with the default that this class has."""
    head, mark, rest = text.partition("default=")
    stated, newline, body = rest.partition("\n")
    if not mark or ast.literal_eval(stated) == entry.default:
        return text
    return f"{head}{mark}{entry.default!r}{newline}{body}"

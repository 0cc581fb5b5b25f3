"""Parameters of an estimator and their descriptions, each written once and inherited."""

from __future__ import annotations

import ast
import re
from dataclasses import Field, dataclass, field, fields
from inspect import cleandoc
from typing import Any, TypeVar, dataclass_transform

__all__ = ["declare"]

Class = TypeVar("Class", bound=type)

SECTION = re.compile(r"^(Parameters|Attributes|See Also|Notes|References|Examples)\n-+\n", re.M)


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


def _complete(cls: Any) -> str:
    """Return the docstring with the inherited entries."""
    own = _sections(cls.__doc__)
    inherited = [_sections(base.__doc__) for base in cls.__bases__ if _declared(base)]
    parameters = _entries(own.get("Parameters", ""))
    attributes: dict[str, str] = {}
    for sections in inherited:
        for name, text in _entries(sections.get("Parameters", "")).items():
            parameters.setdefault(name, text)
        attributes = {**attributes, **_entries(sections.get("Attributes", ""))}
    attributes |= _entries(own.get("Attributes", ""))
    known = {entry.name: entry for entry in fields(cls)}
    first = [name for name in ("n_clusters",) if name in parameters]
    listed = [*first, *(name for name in parameters if name in known and name not in first)]
    own["Parameters"] = "\n".join(_with_default(parameters[name], known[name]) for name in listed)
    own["Attributes"] = "\n".join(attributes.values())
    order = dict.fromkeys(["", "Parameters", "Attributes", *own])
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{own[title].strip()}" if title else own[title].strip()
        for title in order
        if own[title].strip()
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

"""Lazy loading of the public names of `caudal`.

Every process imports the package, and most processes need few of its names. The package imports
this module, which gives the package a `__getattr__` that loads a public name on first use.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_HOMES = {
    "Answers": "caudal.results.answers",
    "CaudalError": "caudal.errors",
    "Client": "caudal.client.client",
    "Result": "caudal.results.answers",
    "run": "caudal.api",
    "sentiment": "caudal.api",
    "sql": "caudal.api",
}


class _Package(ModuleType):
    """The package module. `sql` stays the function even after the subpackage `sql` is imported."""

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(_HOMES[name]), name)
        self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOMES})


sys.modules["caudal"].__class__ = _Package

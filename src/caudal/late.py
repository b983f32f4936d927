"""Lazy loading of the public names of packages.

Every process imports `caudal`, and most processes need few of its names. The package imports this
module, which gives the package a `__getattr__` that loads a public name on first use. Other
packages call `offer` for the same.
"""

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

_OFFERED = {
    "Answers": "caudal.results.answers",
    "CaudalError": "caudal.errors",
    "Client": "caudal.client.client",
    "Dataset": "caudal.dataset_api",
    "Result": "caudal.results.answers",
    "SparkOptions": "caudal.run_options",
    "load": "caudal.dataset_api",
    "run": "caudal.api",
    "sentiment": "caudal.api",
    "sql": "caudal.api",
}


class _Package(ModuleType):
    """A package module. An offered name stays what it is even after a submodule of the same name
    is imported, as `caudal.sql` is."""

    def __getattr__(self, name: str) -> Any:
        homes = self.__dict__["__homes__"]
        if name not in homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            found = getattr(importlib.import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            from caudal import extras

            raise extras.explained(error) or error from None
        self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in self.__dict__["__homes__"] and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["__homes__"]})


def offer(package: str, homes: Mapping[str, str]) -> None:
    """Make a package load these names on first use. `homes` gives the module of each name."""
    module = sys.modules[package]
    module.__dict__["__homes__"] = homes
    module.__class__ = _Package


offer("caudal", _OFFERED)

"""What `import caudal` offers, loaded when it is first asked for.

Every process begins by importing the package, and most need little of what it offers. So this
module, which the package imports, turns it into one that looks names up when they are missing.
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
    """The package. `sql` stays the function, whenever the subpackage of that name is imported."""

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

"""Builds the kernels of a wheel, or of an editable install, unless they are built already."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles the kernels of this tree in a process of its own, by its own sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version, build_data
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root) / "src")}
        command = [sys.executable, "-m", "caudal.kernels.building"]
        subprocess.run(command, cwd=self.root, env=environment, check=True)

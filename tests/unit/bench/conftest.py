"""The benchmarks are no part of the installed package: they are imported from the project."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

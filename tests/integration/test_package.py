"""What `import caudal` loads, in a process of its own."""

import subprocess
import sys


def test_what_the_package_offers_is_loaded_late_and_stays() -> None:
    """`caudal.sql` is the function, also after the subpackage of that name was imported."""
    script = (
        "import sys, caudal; assert 'caudal.api' not in sys.modules; import caudal.sql.parsing; "
        "print(caudal.sql.__module__, all(hasattr(caudal, name) for name in caudal.__all__), "
        "set(caudal.__all__) <= set(dir(caudal)), hasattr(caudal, 'nothing'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["caudal.api", "True", "True", "False"]

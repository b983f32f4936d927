"""`python -m tests.tidy.telling FILE TEXT COMMAND...`: a command of `caudal`, in this interpreter.

At its end, or as soon as it logs the text, the names of all loaded modules go to the file.
"""

import logging
import os
import sys
from pathlib import Path


def main() -> None:
    path, text, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

    def tell() -> None:
        path.write_text(
            " ".join(name for name in list(sys.modules) if not name.startswith("tests"))
        )

    class Watching(logging.Logger):
        def handle(self, record: logging.LogRecord) -> None:
            super().handle(record)
            if record.getMessage() == text:
                tell()
                os._exit(0)

    if text:
        logging.setLoggerClass(Watching)
    sys.argv = ["caudal", *arguments]
    from caudal.cli.main import main as caudal

    try:
        caudal()
    finally:
        tell()


if __name__ == "__main__":
    main()

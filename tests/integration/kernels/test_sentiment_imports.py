"""What a score of sentiment loads."""

import subprocess
import sys


def test_the_analyzer_package_is_never_imported() -> None:
    program = (
        "import sys, pyarrow as pa\n"
        "from caudal.kernels.sentiment.column import score\n"
        "score(pa.array(['good']))\n"
        "assert not {'textblob', 'nltk', 'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

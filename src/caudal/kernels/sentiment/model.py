"""Which sentiment model a run uses: the port that every model fills, and how one is chosen."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from caudal.errors import UsageError

if TYPE_CHECKING:  # loaded when a text is scored
    import pyarrow as pa

    from caudal.kernels.sentiment.column import Scores


class SentimentModel(Protocol):
    """Anything that gives each text of a column a polarity in [-1, 1].

    Null and empty texts score 0.0. The same column always gives the same scores, so that a result
    does not depend on which process computed it; `name` and `version` say which model that was.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def score(self, texts: "pa.Array") -> "Scores": ...


@dataclass(frozen=True)
class LexiconModel:
    """The default model: the compiled kernel over TextBlob's lexicon, loaded when needed."""

    name: str = "lexicon"

    @property
    def version(self) -> str:
        from caudal.kernels.sentiment.column import compiled_lexicon

        return compiled_lexicon().lexicon.version

    def score(self, texts: "pa.Array") -> "Scores":
        from caudal.kernels.sentiment.column import score

        return score(texts)


def load_model(spec: str = "lexicon") -> SentimentModel:
    """The model that `spec` names: ``lexicon`` or ``transformers:/path/to/model``.

    Raises `UsageError` for an unknown name or a missing directory, and `MissingPackageError`
    when the packages of an optional model are not installed.
    """
    kind, _, argument = spec.partition(":")
    if spec == "lexicon":
        return LexiconModel()
    if kind == "transformers" and argument:
        from caudal.kernels.sentiment.transformers_model import load_transformers_model

        return load_transformers_model(Path(argument))
    raise UsageError(
        f"unknown sentiment model '{spec}'; use 'lexicon' or 'transformers:/path/to/model'"
    )

"""The interface of sentiment models, and how a run chooses one."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from caudal.errors import UsageError

if TYPE_CHECKING:  # loaded when a text is scored
    import pyarrow as pa

    from caudal.kernels.sentiment.column import Scores


class SentimentModel(Protocol):
    """A model that gives each text of a column a polarity in [-1, 1].

    Null and empty texts score 0.0. The same column always gets the same scores, so a result does
    not depend on the process that computed it. `name` and `version` identify the model.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def score(self, texts: "pa.Array") -> "Scores": ...


@dataclass(frozen=True)
class LexiconModel:
    """The default model: the compiled kernel with TextBlob's lexicon, loaded on first use."""

    name: str = "lexicon"

    @property
    def version(self) -> str:
        from caudal.kernels.sentiment.column import compiled_lexicon

        return compiled_lexicon().lexicon.version

    def score(self, texts: "pa.Array") -> "Scores":
        from caudal.kernels.sentiment.column import score

        return score(texts)


def folder_version(spec: str) -> str:
    """Return the version of the model that `spec` names if it is in a folder, without loading it;
    else "": the lexicon is a part of Caudal."""
    kind, _, folder = spec.partition(":")
    if kind != "transformers" or not folder:
        return ""
    from caudal.kernels.sentiment.transformers_model import version_of

    return version_of(Path(folder))


def load_model(spec: str = "lexicon") -> SentimentModel:
    """Return the model that `spec` names: ``lexicon`` or ``transformers:/path/to/model``.

    Raise `UsageError` for an unknown name or a missing directory, and `MissingPackageError` if
    the packages of an optional model are not installed.
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

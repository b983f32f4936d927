"""A sentiment model from a local directory in Hugging Face's format, run on the CPU.

Nothing is fetched, unpickled or executed from the directory: it must hold safetensors weights,
and a model that brings its own code is refused. The packages are imported only when such a model
is asked for, since they are an optional extra and slow to import.
"""

import hashlib
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from caudal.errors import MissingPackageError, UsageError
from caudal.kernels.sentiment.column import Scores

BATCH_TEXTS = 32
MAX_TOKENS = 512
_STARS = re.compile(r"([1-5]) stars?")
_VERSIONED_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")


@dataclass(frozen=True)
class TransformersModel:
    """A sequence classifier whose label probabilities become one polarity."""

    name: str
    version: str
    weights: npt.NDArray[np.float64]
    tokenizer: Any
    classifier: Any
    torch: Any

    def score(self, texts: pa.Array) -> Scores:
        """Return polarities in [-1, 1]; a text longer than the model's window is cut to it.

        Texts are sorted by length into batches, so that padding costs little. The batches depend
        on the column, and with them the last bits of a score may.
        """
        values: list[str | None] = texts.to_pylist()
        scores = np.zeros(len(values))
        for rows in _batches(values):
            probabilities = self._probabilities([values[row] or "" for row in rows])
            scores[rows] = np.clip(probabilities @ self.weights, -1.0, 1.0)
        return scores

    def _probabilities(self, batch: list[str]) -> npt.NDArray[np.float64]:
        encoded = self.tokenizer(
            batch,
            padding=True,
            truncation=True,
            max_length=_window(self.tokenizer, self.classifier),
            return_tensors="pt",
        )
        with self.torch.inference_mode():
            logits = self.classifier(**encoded).logits.double()
            probabilities: npt.NDArray[np.float64] = logits.softmax(dim=-1).numpy()
        return probabilities


def load_transformers_model(directory: Path) -> TransformersModel:
    """Load tokenizer, weights and label names from a local directory."""
    torch, transformers = _require("torch"), _require("transformers")
    if not directory.is_dir():
        raise UsageError(f"no sentiment model at {directory}: it must be a local directory")
    if not any(directory.glob("*.safetensors")):
        raise UsageError(f"no safetensors weights in {directory}: convert the model to safetensors")
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(directory), **local)
        classifier = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(directory), use_safetensors=True, dtype=torch.float32, **local
        )
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"cannot load the sentiment model in {directory}: {reason}") from error
    return TransformersModel(
        name=f"transformers:{directory.name}",
        version=version_of(directory),
        weights=label_weights(classifier.config.id2label),
        tokenizer=tokenizer,
        classifier=classifier.eval(),
        torch=torch,
    )


def label_weights(labels: Mapping[int, str]) -> npt.NDArray[np.float64]:
    """Return the polarity of each label, by its name: the score is their mean by probability.

    Known names: positive, negative and neutral; ``LABEL_0`` and ``LABEL_1`` of a two-label model
    (negative, positive); ``1 star`` to ``5 stars``, linear from -1 to 1.
    """
    names = [str(labels[index]).strip().lower() for index in sorted(labels)]
    if names == ["label_0", "label_1"]:
        return np.array([-1.0, 1.0])
    stars = [_STARS.fullmatch(name) for name in names]
    if len(names) == 5 and all(stars):
        return np.array([(int(match[1]) - 3) / 2 for match in stars if match])
    known = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}
    if {"positive", "negative"} <= set(names) <= set(known):
        return np.array([known[name] for name in names])
    raise UsageError(
        f"cannot tell polarity from the model's labels ({', '.join(names)}); expected "
        "positive/negative, LABEL_0/LABEL_1 or 1 star to 5 stars"
    )


def _batches(texts: Sequence[str | None]) -> Iterator[list[int]]:
    """Return rows with something to score, short texts first, in batches."""
    rows = [row for row, text in enumerate(texts) if text]
    rows.sort(key=lambda row: len(texts[row] or ""))
    for first in range(0, len(rows), BATCH_TEXTS):
        yield rows[first : first + BATCH_TEXTS]


def _window(tokenizer: Any, classifier: Any) -> int:
    positions = getattr(classifier.config, "max_position_embeddings", MAX_TOKENS)
    return int(min(MAX_TOKENS, positions, tokenizer.model_max_length))


def version_of(directory: Path) -> str:
    """Return a digest of the files that decide the scores."""
    digest = hashlib.sha256()
    for path in sorted({path for glob in _VERSIONED_FILES for path in directory.glob(glob)}):
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"the transformers sentiment model needs the package {package}; "
            "install it with: pip install 'caudal[transformers]'"
        ) from error

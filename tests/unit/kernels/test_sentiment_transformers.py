"""The transformers model, with a tiny random network built here: no weights are fetched."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.harness.tiny_model import STARS, build_model

from caudal.errors import UsageError
from caudal.kernels.sentiment import load_model

pytest.importorskip("torch", reason="the extra caudal[transformers] is not installed")
pytest.importorskip("transformers", reason="the extra caudal[transformers] is not installed")

TEXTS = ["a very good film", "bad films", "", None, "good " * 200, "unknown"]


def reference(folder: Path, text: str, weights: Any) -> float:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        encoded = tokenizer(text, truncation=True, max_length=32, return_tensors="pt")
        probabilities = model(**encoded).logits.softmax(-1)[0].double().numpy()
    return float(probabilities @ weights)


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        (["NEGATIVE", "POSITIVE"], [-1, 1]),
        (["LABEL_0", "LABEL_1"], [-1, 1]),
        (STARS, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_polarity_is_the_mean_of_the_labels(
    tmp_path: Path, labels: list[str], weights: list[float]
) -> None:
    folder = build_model(tmp_path, labels)
    scores = load_model(f"transformers:{folder}").score(pa.array(TEXTS))
    expected = [reference(folder, text, weights) if text else 0.0 for text in TEXTS]
    assert scores == pytest.approx(expected, abs=1e-5)
    assert scores.dtype == np.float64
    assert np.abs(scores).max() <= 1.0


def test_the_same_texts_give_the_same_scores(tmp_path: Path) -> None:
    folder = build_model(tmp_path, STARS)
    texts = pa.array(TEXTS * 20)
    first, second = load_model(f"transformers:{folder}"), load_model(f"transformers:{folder}")
    assert np.array_equal(first.score(texts), second.score(texts))
    assert (first.name, first.version) == (second.name, second.version)


def test_other_weights_are_another_version(tmp_path: Path) -> None:
    stars = build_model(tmp_path / "stars", STARS)
    two = build_model(tmp_path / "two", ["LABEL_0", "LABEL_1"])
    versions = {load_model(f"transformers:{folder}").version for folder in (stars, two)}
    assert len(versions) == 2


def test_unknown_labels_are_refused(tmp_path: Path) -> None:
    folder = build_model(tmp_path, ["joy", "anger", "fear"])
    with pytest.raises(UsageError, match="joy, anger, fear"):
        load_model(f"transformers:{folder}")


def test_a_model_that_brings_code_is_refused(tmp_path: Path) -> None:
    folder = build_model(tmp_path, STARS)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "evil.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    with pytest.raises(UsageError, match="cannot load the sentiment model"):
        load_model(f"transformers:{folder}")

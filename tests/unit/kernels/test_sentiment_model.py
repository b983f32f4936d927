"""Choosing a model: the default, the mistakes, and what a missing package says."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from caudal.errors import MissingPackageError, UsageError
from caudal.kernels.sentiment import folder_version, load_model
from caudal.kernels.sentiment.transformers_model import label_weights


def test_the_lexicon_is_the_default() -> None:
    model = load_model()
    assert (model.name, model.version) == ("lexicon", load_model("lexicon").version)
    assert model.score(pa.array(["good", None])).tolist() == [0.7, 0.0]


@pytest.mark.parametrize("spec", ["", "vader", "lexicon:", "transformers", "transformers:"])
def test_an_unknown_model_is_one_clear_line(spec: str) -> None:
    with pytest.raises(UsageError, match="unknown sentiment model") as raised:
        load_model(spec)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_says_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, None if name == package else sys)
    with pytest.raises(MissingPackageError, match=r"pip install 'caudal\[transformers\]'"):
        load_model(f"transformers:{tmp_path}")


def test_a_missing_directory_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, sys)
    with pytest.raises(UsageError, match=r"no sentiment model at .*absent"):
        load_model(f"transformers:{tmp_path / 'absent'}")


def test_pickled_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, sys)
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(UsageError, match="safetensors"):
        load_model(f"transformers:{tmp_path}")


def test_the_version_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    versions = [folder_version(f"transformers:{tmp_path}")]
    for name, text in (("model.safetensors", "a"), ("model.safetensors", "b"), ("config.json", "")):
        (tmp_path / name).write_text(text)
        versions.append(folder_version(f"transformers:{tmp_path}"))
    assert len(set(versions)) == len(versions)
    (tmp_path / "README.md").write_text("more")
    assert folder_version(f"transformers:{tmp_path}") == versions[-1]
    assert folder_version("lexicon") == ""


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        (["NEGATIVE", "POSITIVE"], [-1, 1]),
        (["positive", "neutral", "negative"], [1, 0, -1]),
        (["LABEL_0", "LABEL_1"], [-1, 1]),
        (["1 star", "2 stars", "3 stars", "4 stars", "5 stars"], [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_polarity_comes_from_the_label_names(labels: list[str], weights: list[float]) -> None:
    assert np.array_equal(label_weights(dict(enumerate(labels))), weights)


@pytest.mark.parametrize(
    "labels", [["joy", "anger"], ["LABEL_0", "LABEL_1", "LABEL_2"], ["positive"], ["1 star"]]
)
def test_labels_without_a_polarity_are_refused(labels: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot tell polarity"):
        label_weights(dict(enumerate(labels)))

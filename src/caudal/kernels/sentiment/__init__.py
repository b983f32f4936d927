"""Sentiment: the polarity of texts, by a compiled lexicon kernel or a pluggable model."""

from caudal.kernels.sentiment.model import SentimentModel, folder_version, load_model

__all__ = ["SentimentModel", "folder_version", "load_model"]

"""The file Books_rating.csv.

Reviews of one title are together in runs, like those of one edition. The runs are spread over the
file, so that every part of it has the same mixture of famous and unknown titles.
"""

from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import text, tokens
from caudal.generate.dice import Dice, Ints, weighted_slots
from caudal.generate.listing import words
from caudal.generate.people import profile_names
from caudal.generate.popularity import Shuffle
from caudal.generate.prose import MOST_SENTENCES, Tone
from caudal.generate.review_phrases import review_prose, summaries
from caudal.generate.sheet import Sheet, keep_first, keep_last, set_field
from caudal.generate.volumes import QUALITIES, Catalogue

HEADER = words(
    """
    Id Title Price User_id profileName review/helpfulness review/score review/time review/summary
    review/text
    """
)
FAULTS = (
    set_field(HEADER.index("review/score"), "five"),
    keep_first(9),
    set_field(HEADER.index("Title"), ""),
    keep_last(4),
    set_field(HEADER.index("review/score"), ""),
)
RUN = 32
"""The number of reviews in a run."""
_USERS_PER_REVIEW = 3
_SHADES = 32
_SAD = np.array((0, 150, 120, 80, 40, 24), dtype=np.int64)
_GLAD = np.array((0, 20, 44, 80, 120, 160), dtype=np.int64)
"""The numbers of sad and of glad sentences among 256, by score."""


def reviews_sheet(catalogue: Catalogue) -> Sheet:
    """Describe Books_rating.csv for this catalogue."""
    return Sheet(
        name="Books_rating.csv",
        header=HEADER,
        rows=catalogue.reviews,
        chunk_rows=4_096,
        columns=lambda row: _columns(catalogue, row),
        faults=FAULTS,
    )


def _columns(catalogue: Catalogue, row: Ints) -> list[pa.Array]:
    dice = catalogue.dice
    book = _books(catalogue, row)
    edition = book * 1_024 + row // RUN % 16
    user = dice.skewed("user", row, max(1, catalogue.reviews // _USERS_PER_REVIEW))
    anonymous = dice.percent("anonymous", row, 19)
    score = _scores(dice, row, catalogue.qualities(book))
    fields = {
        "Id": tokens.isbns(dice, "isbn", edition),
        "Title": text.field(catalogue.titles(book)),
        "Price": _prices(dice, edition),
        "User_id": text.blank(tokens.user_ids(dice, "user", user), anonymous),
        "profileName": text.blank(_profiles(dice, user), anonymous),
        "review/helpfulness": _helpfulness(dice, row),
        "review/score": text.take(text.pool(f"{n}.0" for n in range(6)), score),
        "review/time": text.digits(86_400 * (9_500 + dice.below("review/day", row, 6_200))),
        "review/summary": _summaries(dice, row, score),
        "review/text": _texts(dice, row, score),
    }
    return [fields[name] for name in HEADER]


def _books(catalogue: Catalogue, row: Ints) -> Ints:
    """Return the book of each review. Reviews that do not fill a run stay at the end."""
    runs = catalogue.reviews // RUN
    run, place = np.divmod(row, RUN)
    spread = Shuffle(max(1, runs)).forward(run) * RUN + place
    return catalogue.by_rank(catalogue.fame.ranks(np.where(run < runs, spread, row)))


def _scores(dice: Dice, row: Ints, quality: Ints) -> Ints:
    """Return scores from 1 to 5. Most are high, and better books have better scores."""
    return _score_table()[quality, dice.below("score", row, _SHADES)]


def _prices(dice: Dice, edition: Ints) -> pa.Array:
    cents = text.pool(f"{n // 4 + 4}.{('00', '50', '95', '99')[n % 4]}" for n in range(240))
    price = text.take(cents, dice.skewed("price", edition, 240))
    return text.blank(price, dice.percent("no price", edition, 84))


def _profiles(dice: Dice, user: Ints) -> pa.Array:
    return text.take(profile_names(), dice.below("profile", user, len(profile_names())))


def _helpfulness(dice: Dice, row: Ints) -> pa.Array:
    votes = dice.skewed("votes", row, 24) * ~dice.percent("no votes", row, 30)
    helpful = votes - dice.below("unhelpful", row, votes // 2 + 1)
    return text.concat(text.digits(helpful), "/", text.digits(votes))


def _summaries(dice: Dice, row: Ints, score: Ints) -> pa.Array:
    pools = summaries()
    mood = np.where(dice.percent("summary/plain", row, 35), 1, np.where(score < 3, 0, 2))
    sizes = np.array([len(pool) for pool in pools], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    chosen = starts[mood] + dice.below("summary", row, sizes[mood])
    return text.take(pa.concat_arrays(pools), chosen)


def _texts(dice: Dice, row: Ints, score: Ints) -> pa.Array:
    sentences = dice.weighted("text/length", row, _lengths())
    tone = Tone(sad=_SAD[score], glad=_GLAD[score])
    return review_prose().fields(dice, "text", row, sentences, tone)


@cache
def _lengths() -> Ints:
    """Return the lengths in sentences: many short, some long, few very long, rarely none."""
    short = [10**9 * 8**n // 10**n for n in range(MOST_SENTENCES)]
    middle = [10**9 * 91**n // 100**n for n in range(MOST_SENTENCES)]
    long = [10**9 * 96**n // 100**n for n in range(MOST_SENTENCES)]
    mixture = [7 * s + 6 * m + n for s, m, n in zip(short, middle, long, strict=True)]
    return weighted_slots([10**7, *mixture])


@cache
def _score_table() -> Ints:
    """Return scores by the quality of the book and the mood of the reader."""
    quality, shade = np.divmod(np.arange(QUALITIES * _SHADES, dtype=np.int64), _SHADES)
    liking = shade * 5 + quality * 3
    scores = 1 + np.searchsorted((28, 38, 52, 84), liking, side="right").astype(np.int64)
    return np.reshape(scores, (QUALITIES, _SHADES))

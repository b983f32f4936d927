"""The words and templates of film overviews, taglines and book descriptions."""

from functools import cache

import pyarrow as pa

from caudal.generate import text
from caudal.generate.listing import phrases, words
from caudal.generate.prose import Prose, Voice
from caudal.generate.templates import expand
from caudal.generate.words import PLACES

WORDS = {
    "place": PLACES,
    "glad": words(
        """
        beautiful brilliant charming happy brave wonderful gentle funny loving kind talented gifted
        lucky famous delightful magical clever wise sweet generous
        """
    ),
    "sad": words(
        """
        brutal cruel corrupt violent desperate evil terrible broken lonely bitter dangerous sick
        sinister ruthless disturbed greedy horrible miserable vicious hopeless
        """
    ),
    "plain": words(
        """
        young retired married former middle-aged local foreign wandering Irish unemployed suburban
        elderly rural teenage provincial
        """
    ),
    "who": words(
        """
        detective teacher soldier widow farmer journalist doctor thief lawyer painter pianist priest
        student sailor actress photographer banker cook mechanic spy nurse boxer singer writer
        taxi-driver policeman chess-player conductor dancer trucker clerk judge smuggler
        """
    ),
    "kin": words(
        """
        brother sister father mother daughter son uncle aunt husband wife cousin neighbor
        """
    ),
    "thing": phrases(
        "a letter|an old map|a stolen painting|a family secret|a suitcase of money|a lost dog|"
        "a photograph|a diary|the truth about the war|a forgotten crime|an inheritance|"
        "a haunted house|a bank robbery|a piano|"
        "a strange signal|a missing child|a train ticket|a wedding ring|a recipe|a murder|a cure|"
        "a debt|a promise made long ago|a racing horse"
    ),
    "time": phrases(
        "in the summer of 1943|after the war|on New Year's Eve|one winter night|in the near future|"
        "during the Great Depression|on the eve of the wedding|at the turn of the century|in 1976|"
        "over a single weekend|during a heat wave|twenty years later|before the election"
    ),
    "verb": words(
        """
        meets finds follows hires marries befriends confronts escapes rescues remembers
        """
    ),
}

GLAD = (
    "a {glad} {who} from {place} {verb} a {glad} {who} and finds true love",
    "a {plain} {who} and a {glad} {who} share a wonderful adventure in {place}",
    "with the help of a {glad} {who}, the {kin} wins back {thing}",
    "a {glad} {kin} brings joy and laughter to a small town near {place}",
    "it is the funny and {glad} story of a {who} who discovers {thing} {time}",
    "the {glad} {who} learns that friendship is the best gift of all",
    "everything turns out perfect when a {glad} {who} arrives in {place}",
    "the {kin} makes an amazing discovery: {thing}",
    "they win a great victory and return to {place}, happy and proud",
)

SAD = (
    "a {sad} {who} from {place} kills a {plain} {who} over {thing}",
    "a {plain} {who} is trapped in {place} by a {sad} {who}",
    "the {sad} {kin} seeks bloody revenge {time}",
    "a {sad} killer terrorizes {place} {time}",
    "it is the tragic and {sad} story of a {who} who loses {thing} {time}",
    "the {who} falls into a terrible nightmare of fear and guilt",
    "everything goes horribly wrong when a {sad} {who} arrives in {place}",
    "the {kin} dies a {sad} death, and {thing} is to blame",
    "they are poor, sick and angry, and the worst is still to come in {place}",
)

PLAIN = (
    "a {plain} {who} travels to {place} to look for {thing}",
    "{time}, a {plain} {who} {verb} a {who} in {place}",
    "a {who} {verb} a {kin} in {place} {time}",
    "the {kin} of a {plain} {who} leaves {place} with {thing}",
    "the story follows a {who}, a {who} and a {kin} through {place}",
    "{time}, {thing} changes the lives of a {plain} {who} and a {who}",
    "what begins as a visit to {place} becomes a search for {thing}",
    'the {who}, known as "the {plain} {kin}", {verb} a {who}',
    "the {kin} must choose between {thing} and a {plain} {who}",
    "based on the novel about a {who} from {place}",
    "nobody in {place} knows that the {who} has {thing}",
)

LEADS = (
    "Meanwhile, ",
    "Soon ",
    "But then ",
    "Years later, ",
    "Back in {place}, ",
    "Against the wishes of the {kin}, ",
    "In this story, ",
    "Along the way, ",
    "As the police close in, ",
    "Set in {place}: ",
)

TAILS = (".",) * 9 + ("...", " -- or so it seems.", ", until the night of the storm.", "?")

TAGLINES = (
    "Nobody leaves {place}.",
    "He wanted {thing}. She wanted {place}.",
    "A {who}, a {who}, and {thing}.",
    "Trust no {who}",
    "The {plain} {who} is back!",
    'They called her "the {who}."',
    "Love, lies and {thing}",
    "{place} will never be the same",
)


@cache
def plot_prose() -> Prose:
    """Return the prose of film overviews and of book descriptions."""
    return Prose(
        expand(LEADS, WORDS, 12),
        sad=Voice(expand(SAD, WORDS, 220), TAILS),
        plain=Voice(expand(PLAIN, WORDS, 220), TAILS),
        glad=Voice(expand(GLAD, WORDS, 220), TAILS),
    )


@cache
def taglines() -> pa.Array:
    """Return the taglines of films, as CSV fields."""
    return text.field(text.pool(expand(TAGLINES, WORDS, 200)))

"""The templates of book reviews and of their summaries."""

from functools import cache

import pyarrow as pa

from caudal.generate import text
from caudal.generate.prose import Prose, Voice
from caudal.generate.review_words import WORDS
from caudal.generate.templates import expand

GLAD = (
    "the {aspect} is {very} {good}",
    "the {aspect} was {good} and the {aspects} are {very} {good}",
    "I loved the {aspect} and the {aspects}",
    "this is one of the most {good} books about {topic} I have ever read",
    "it is a {very} {good} {kind}",
    "the {aspect} is not {bad} at all",
    "it is never {bad}, and the {aspect} is {good}",
    "I can't recommend this {kind} enough",
    "{reader} loved it and so did I",
    "I read it {when} and it was {good}",
    "the best {kind} on {topic} that I own",
    "every one of the {aspects} is {good}",
    "a {good}, {good} {kind} with {good} {aspects}",
    "the author has a {very} {good} way of writing about {topic}",
    "I laughed, I cried, and I enjoyed the {aspect} more than I expected",
    "the {aspects} made me happy",
    "you will love the {aspect}",
    "what a {good} {kind}",
    "I was not disappointed by the {aspect}",
    'the chapter called "{good} {aspects}" is {good}',
    "the {aspect}, like that of {famous}, is {good}",
    "{reader} gave it to me {when} and I am {very} glad",
    "it is well written and {very} easy to read",
    "I have bought {number} copies for friends, which says how {good} it is",
    "there is nothing {bad} about the {aspect}",
    "the {aspects} are fun, {good} and {good}",
)

SAD = (
    "the {aspect} is {very} {bad}",
    "the {aspect} was {bad} and the {aspects} are {very} {bad}",
    "I hated the {aspect} and the {aspects}",
    "this is one of the most {bad} books about {topic} I have ever read",
    "it is a {very} {bad} {kind}",
    "the {aspect} is not {good}",
    "it is not {very} {good}, and the {aspect} is {bad}",
    "I would not recommend this {kind} to anyone",
    "{reader} hated it and so did I",
    "I tried to read it {when} and it was {bad}",
    "the worst {kind} on {topic} that I own",
    "not one of the {aspects} is {good}",
    "a {bad}, {bad} {kind} with {bad} {aspects}",
    "the author has a {very} {bad} way of writing about {topic}",
    "I was bored by the {aspect} after {number} pages",
    "the {aspects} made me angry",
    "do not waste your money on this {kind}",
    "what a {bad} {kind}",
    "I was {very} disappointed by the {aspect}",
    "the chapter about the {bad} {aspects} is {bad}",
    "the {aspect}, unlike that of {famous}, is {bad}",
    "{reader} gave it to me {when} and I am sorry to say it is {bad}",
    "it is badly written and {very} hard to follow",
    "there are {number} mistakes on nearly every page",
    "there is nothing {good} about the {aspect}",
    "the {aspects} are never {good} and often {bad}",
)

PLAIN = (
    "I read this {kind} {when}",
    "{reader} gave it to me {when}",
    "the {aspect} deals with {topic} and {topic}",
    "it has {number} chapters about {topic}",
    "the {kind} begins with {topic} and ends with {topic}",
    "the author writes about {topic} as {famous} did",
    "I had to read it {when}",
    "the {aspects} come after the {aspect}",
    "there are {number} {aspects} in each part",
    "some of the {aspects} are about {topic}, others about {topic}",
    "it compares {topic} with {topic}",
    "{reader} asked me about the {aspect}",
    "I borrowed it from the library {when}",
    "the second half turns from {topic} to {topic}",
    "the {kind} is set {number} years before the war",
    "the author calls this the {aspect} of {topic}",
    "I have read {number} other books by the same author",
    "my copy has {number} hundred pages and a map",
    "this {kind} was written for people who know about {topic}",
    "the translation keeps the {aspects} of the first edition",
)

LEADS = (
    "To begin with, ",
    "In the end, ",
    "To be honest, ",
    "On the other hand, ",
    "For me, ",
    "All in all, ",
    "After the first hundred pages, ",
    "As others have said, ",
    "Still, ",
    "Then again, ",
    "As a teacher, I must say that ",
    "In my opinion ",
    "I think that ",
    "I must admit that ",
    "However, ",
    "At times I felt that ",
    "What I remember is that ",
    "Without giving anything away, ",
    "Even {reader} noticed that ",
    "Compared with {famous}, I would say that ",
    "If you care about {topic}, you should know that ",
    "When I think of {topic}, I remember that ",
    "It seems to me that ",
    "By the way, ",
    "And ",
    "But ",
    "Also, ",
)

PLAIN_TAILS = (
    (".",) * 8
    + ("...", ";-)", ", I believe.", ", or so it seems.", ", as the cover says.")
    + (", if you ask me.", " -- but that is another matter.", ".  ", ", naïve as that sounds.")
)
GLAD_TAILS = (
    (".",) * 8
    + ("!", "!", "!!!", " and I couldn't put it down.", ", and I will read it again.")
    + (", highly recommended!", ", five stars!", " and worth every penny.", ".", " - wow!")
)
SAD_TAILS = (
    (".",) * 8
    + ("!", "?!", "...", ", which is a shame.", " and I gave up.", ", save your money.")
    + (", what a waste of time!", " and I want my money back.", ", sadly.", ".")
)

SUMMARIES = (
    (
        "{bad} {kind}",
        "not {good}",
        "{very} {bad}!",
        "A {bad} {kind} about {topic}",
        "Don't bother",
        "Not the {kind} I expected, and {bad}",
        "{bad} {aspect}, {bad} {aspects}",
        "Save your money",
    ),
    (
        "A {kind} about {topic}",
        "{topic} and {topic}",
        "The {aspect} and the {aspects}",
        "OK {kind}",
        "For readers who know {topic}",
        "Review of the {aspect}",
        "Read {when}",
        '"{topic}"',
    ),
    (
        "{good} {kind}",
        "{very} {good}!",
        "A {good} {kind} about {topic}",
        "Loved it!",
        "A must read",
        "{good}, {good} and {good}",
        "{good} {aspect}, {good} {aspects}",
        "Five stars for {topic}",
    ),
)


@cache
def review_prose() -> Prose:
    """Return the prose of reviews."""
    return Prose(
        expand(LEADS, WORDS, 12),
        sad=Voice(expand(SAD, WORDS, 160), SAD_TAILS),
        plain=Voice(expand(PLAIN, WORDS, 160), PLAIN_TAILS),
        glad=Voice(expand(GLAD, WORDS, 160), GLAD_TAILS),
    )


@cache
def summaries() -> tuple[pa.Array, ...]:
    """Return the summaries of sad, plain and glad reviews, as CSV fields."""
    return tuple(text.field(text.pool(map(_headline, expand(t, WORDS, 250)))) for t in SUMMARIES)


def _headline(phrase: str) -> str:
    return phrase[:1].upper() + phrase[1:]

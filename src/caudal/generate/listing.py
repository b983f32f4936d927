"""Long lists of words, written as text so that they stay readable."""


def words(listing: str) -> list[str]:
    """Words separated by white space."""
    return listing.split()


def phrases(listing: str) -> list[str]:
    """Phrases separated by bars; a line break inside one is a space."""
    return [" ".join(phrase.split()) for phrase in listing.split("|")]

"""Long lists of words, written as text so that they stay readable."""


def words(listing: str) -> list[str]:
    """Return words separated by white space."""
    return listing.split()


def phrases(listing: str) -> list[str]:
    """Return phrases separated by bars. A line break inside a phrase is a space."""
    return [" ".join(phrase.split()) for phrase in listing.split("|")]

"""The vocabulary of book reviews."""

from caudal.generate.listing import phrases, words

GOOD = words(
    """
    good great excellent wonderful brilliant beautiful fantastic amazing superb delightful charming
    clever engaging enjoyable fascinating funny gripping hilarious honest impressive insightful
    inspiring lovely magnificent masterful memorable moving perfect poignant powerful refreshing
    remarkable rewarding rich satisfying stunning sweet thoughtful thrilling touching vivid warm
    witty entertaining fresh elegant compelling helpful useful valuable outstanding original
    exciting interesting smart marvelous superior
    """
)

BAD = words(
    """
    bad terrible awful horrible boring dull disappointing poor weak predictable shallow silly stupid
    tedious confusing annoying bland clumsy dreadful dry forced frustrating lame lazy mediocre messy
    pathetic pointless pretentious repetitive ridiculous sloppy slow stale tiresome ugly unbearable
    unconvincing uneven unpleasant useless worthless worst dreary absurd sad cold cheap contrived
    empty wrong
    """
)

WORDS = {
    "good": GOOD,
    "bad": BAD,
    "very": words(
        """
        very really truly quite so extremely absolutely incredibly rather completely utterly
        genuinely surprisingly particularly especially just simply somewhat
        """
    ),
    "aspect": words(
        """
        plot story writing prose dialogue ending beginning pacing setting style language humor
        characterization research translation cover index introduction argument mystery romance
        suspense middle narrator hero heroine villain author editor vocabulary world-building
        analysis structure chapter opening tone voice symbolism imagery message premise theme
        conclusion
        """
    ),
    "aspects": words(
        """
        characters chapters descriptions illustrations examples recipes photographs exercises poems
        stories details footnotes maps dialogues ideas lessons twists explanations anecdotes
        references diagrams themes letters essays quotations scenes sentences pages
        """
    ),
    "kind": words(
        """
        book novel story read biography memoir collection study guide classic thriller mystery
        romance textbook history adventure tale volume edition series reference debut sequel
        """
    ),
    "reader": phrases(
        """
        my daughter|my son|my husband|my wife|my sister|my mother|my teacher|my best friend|
        my neighbor|my book club|a colleague|my grandmother|my students|our librarian|
        my professor|my cousin|my boss|the whole family
        """
    ),
    "when": phrases(
        """
        in high school|last summer|years ago|on a long flight|over the weekend|in one sitting|
        as a child|for a class|during the holidays|on the train|in a single night|last month|
        in college|on vacation|in the hospital|a decade ago|before the movie came out|
        on a rainy Sunday
        """
    ),
    "topic": phrases(
        """
        war|family|love|grief|friendship|religion|politics|history|science|the sea|childhood|
        gardening|mathematics|money|marriage|faith|travel|cooking|art|music|crime|justice|
        memory|the American West|the old country|immigration|life in a small town|
        the human heart|café society|computers
        """
    ),
    "number": words(
        """
        two three four five six ten twelve twenty fifty
        """
    ),
    "famous": words(
        """
        Dickens Austen Tolstoy Hemingway Borges Cervantes Homer Shakespeare Brontë Melville Flaubert
        Kafka Chekhov Twain Poe Proust
        """
    ),
}

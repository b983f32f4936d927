"""From events to polarity: the analyzer's state machine, compiled."""

from typing import Any

from caudal.kernels.compiled import compiled, inlined
from caudal.kernels.sentiment import rules, tables


@compiled
def assess(events: Any, count: int, t: Any) -> float:
    """Return the mean of the assessments that events[:count] make; see `exact` for the rules.

    An event is four times the entry's number plus the length (at most three) of the longest
    unknown token since the event before. Sums run in the analyzer's order.
    """
    total, assessments = 0.0, 0
    value, intensity, negated = 0.0, 1.0, False
    adverb, adverb_in_ly, negation = False, False, False
    for index in range(count):
        entry, gap = events[index] >> 2, events[index] & 3
        negation = negation and gap <= 1
        adverb = adverb and gap <= 2
        effect = t.effect[entry]
        if entry == tables.EXCLAMATION:
            value = clamp(value * rules.EXCLAMATION_BOOST)
        elif effect & tables.NEGATION:
            if adverb and adverb_in_ly:
                negated = True
                negation = False
            else:
                negation = True
                adverb = adverb and not effect & tables.LONG
        else:
            polarity = t.polarity[entry]
            if adverb and not effect & tables.FACE:
                value = clamp(polarity * intensity)
            else:
                if assessments:
                    total += value * rules.NEGATION_FACTOR if negated else value
                assessments += 1
                value = polarity
                negated = False
            intensity = t.intensity[entry]
            if effect & tables.FACE:
                continue
            if negation:
                intensity = 1.0 / intensity
                negated = True
            negation = False
            adverb = effect & tables.ADVERB != 0
            adverb_in_ly = effect & tables.ENDS_IN_LY != 0
    if assessments == 0:
        return 0.0
    total += value * rules.NEGATION_FACTOR if negated else value
    return total / assessments


@inlined
def clamp(value: float) -> float:
    return max(-1.0, min(value, 1.0))

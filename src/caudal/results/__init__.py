"""What a run gives back: answers, rejected rows, values, and their representations as bytes."""

"""Results of a run: answers, rejected rows, values, and their encodings."""

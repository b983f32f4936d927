"""What the tests of series share: a small world, and stores that record, die or wait."""

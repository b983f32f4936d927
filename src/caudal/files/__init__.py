"""Input files: find them, cut them at record ends, read the pieces as columns."""

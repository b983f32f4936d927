"""Input files: finding them, cutting them at true record ends, reading pieces as columns."""

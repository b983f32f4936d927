"""Other distributed systems answering the books queries, in an environment of their own.

Each module has `opened()`, a context that starts the system and gives `answer(folder)`. They run
in `.venv-rivals` (`make .venv/rivals`), since the project's lock has neither of them.
"""

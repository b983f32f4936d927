"""The shipped queries once more, in plain Python: what the engines are compared with."""

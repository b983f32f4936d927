"""Application folders: load one, write a new one, run its cases."""

from caudal.application.folder import find_application, load_application, shipped_applications

__all__ = ["find_application", "load_application", "shipped_applications"]

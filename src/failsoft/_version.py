"""The version of failsoft."""

__version__ = "0.2.0"

"""The version of the package, where everything within it can read it."""

__version__ = "0.1.0"

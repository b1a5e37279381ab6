"""Formats of table files: each module registers one, and any module may add another."""

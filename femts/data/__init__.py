"""Data sets: catalogue, reading, checks, splits, preprocessing and windows."""

"""Datasets: catalogue, reading, checks, splits, preprocessing and windows."""

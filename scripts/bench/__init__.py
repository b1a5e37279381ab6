"""Benchmarks, run from a checkout: `python -m scripts.bench --help` and `python -m scripts.bench.selection --help`."""

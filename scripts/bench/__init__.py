"""Benchmarks of femts, run from a checkout: `python -m scripts.bench --help`, `python -m scripts.bench.tasks --help`."""

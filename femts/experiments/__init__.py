"""Benchmark tables: a grid of cells, engines that run them, a store of records, and tables computed from these."""

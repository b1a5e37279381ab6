"""Looks at a trained forecaster: audit, backtest and report."""

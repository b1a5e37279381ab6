"""Analysis of a trained forecaster: audit, backtest, tuning and report."""

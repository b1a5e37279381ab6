"""Pretraining of a forecaster that needs no training: series, experts, network, loop and scores."""

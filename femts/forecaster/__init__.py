"""The trained forecaster with everything needed to forecast raw data, and its run folder."""

"""Small tasks of selection, one file each, that show the mixer outside forecasting."""

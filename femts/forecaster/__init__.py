"""A trained model with everything that turns raw data into forecasts, and its folder."""

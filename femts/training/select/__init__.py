"""`--model auto`: tries several models on the rows before the test split and selects the best."""

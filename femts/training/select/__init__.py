"""`--model auto`: models tried on the rows before the test part, and the best of them taken."""

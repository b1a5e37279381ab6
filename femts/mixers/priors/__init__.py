"""Selection priors, one file each; `registry` finds them."""

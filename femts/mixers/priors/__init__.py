"""Selection priors, one file each; importing the package registers them."""

from femts.mixers.priors import aft, decay, gla, linear, mamba, softmax
from femts.mixers.priors.base import BoundPrior, Prior, make_prior, register_prior

__all__ = ["BoundPrior", "Prior", "aft", "decay", "gla", "linear", "make_prior", "mamba", "register_prior", "softmax"]

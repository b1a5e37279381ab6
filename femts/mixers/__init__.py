"""The Free Energy Mixer layer and its selection priors."""

from femts.mixers.config import FreeEnergyMixerConfig, component_flags
from femts.mixers.layer import FreeEnergyMixer, MixerState
from femts.mixers.read import FreeEnergyRead

__all__ = ["FreeEnergyMixer", "FreeEnergyMixerConfig", "FreeEnergyRead", "MixerState", "component_flags"]

"""geoopt, imported without the TorchScript deprecation warnings that its import raises."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import geoopt

__all__ = ["geoopt"]

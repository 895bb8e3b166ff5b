"""The words of the command line."""

import warnings

# PyTorch Geometric 2.8 says it on import, from torch 2.14 on.
warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)

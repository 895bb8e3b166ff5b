"""Layers and optimisers in a loop of your own: a curved classifier of random features.

python examples/own_loop.py
"""

import torch
from torch.nn import functional

from curvlab.layers import StereographicLinear
from curvlab.manifolds import Stereographic
from curvlab.optim import RiemannianAdam

torch.manual_seed(0)
features = torch.randn(200, 8)
labels = (features[:, 0] * features[:, 1] > 0).long()

# Two components, each with a learnable curvature that starts at 0, where the space is flat.
space = Stereographic(components=2, learnable=True)
layer = StereographicLinear(8, 8, space)
readout = torch.nn.Linear(8, 2)
model = torch.nn.ModuleList([layer, readout])

# This Adam moves parameters of manifolds along them and all others as torch's Adam does.
optimizer = RiemannianAdam(model.parameters(), lr=0.05)

for step in range(100):
    points = layer(space.expmap0(0.3 * features))
    loss = functional.cross_entropy(readout(space.logmap0(points)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3d}  loss {loss.item():.3f}")

print(f"last loss {loss.item():.3f}")

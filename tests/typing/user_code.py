"""Code of a user, as type checkers see it: each line that ends in `# wrong` is an error, no other.

mypy takes what geoopt and torch_geometric define for any type; pyright reads their code.
`test_types.py` reads it; it is not run.
"""

from typing import assert_type

import pandas as pd
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import curvlab
from curvlab.layers import LorentzLinear, StereographicLinear
from curvlab.manifolds import Lorentz, PoincareBall, Product, Stereographic, lorentz, stereographic
from curvlab.models import CAT, FPST, GAT, GCN, HGCN, Encoder, Hypformer, PolyFormer, RotH
from curvlab.models.encoder import FlatEncoder
from curvlab.optim import RiemannianAdam
from curvlab.run.load import Run

x = torch.randn(5, 7)
edge_index = torch.tensor([[0, 1], [1, 0]])
graph = Data(x=x, edge_index=edge_index)

# Manifolds and layers
space = Stereographic(components=2, learnable=True)
layer = StereographicLinear(8, 8, space)
StereographicLinear(8, "eight", space)  # wrong
LorentzLinear(8, 8, Lorentz(kappa=-1.0))
LorentzLinear(8, 8, PoincareBall(kappa=-1.0))  # wrong for pyright
assert_type(stereographic.dist(x, x, kappa=-1.0), Tensor)
assert_type(lorentz.origin(3, -1.0), Tensor)
assert_type(space.expmap0(x), Tensor)
stereographic.dist(x)  # wrong
stereographic.distance(x, x, kappa=-1.0)  # wrong

# Models
model = FPST(7, manifold=Stereographic, dim=16, heads=2)
FPST(7, dim="sixteen")  # wrong
FPST(7, attention="quadratic")  # wrong
FPST(7, manifold=Product)
curvlab.models.NoSuchModel(7)  # wrong
GCN(7, no_such_option=1)  # wrong
GCN()  # wrong
GAT(7, heads=2, dim=16, dropout=0.5)
GAT(7, dimension=16)  # wrong
GAT(7, dim=1.5)  # wrong
HGCN(7, dim=16, layers=2)
HGCN(7, layers="two")  # wrong
Hypformer(7, fusion="sum")  # wrong
PolyFormer(7, orders=4)
CAT(in_channels=7)
RotH(num_entities=5, num_relations=2)
RotH(5)  # wrong

# Calls
assert_type(model(graph), Tensor)
assert_type(model(x, edge_index), Tensor)
assert_type(model(x, edge_index, edge_weight=torch.ones(2)), Tensor)
model(graph, edge_index)  # wrong for pyright
model([0.0], edge_index)  # wrong
model()  # wrong
encoder: Encoder = model
module: nn.Module = model
assert_type(model.dim_out, int)
RiemannianAdam(model.parameters(), lr=0.01)
RiemannianAdam(model, lr=0.01)  # wrong


class Mine(FlatEncoder):
    """A model of the user's own."""

    def __init__(self, in_channels: int, dim: int = 16) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, dim)
        self.dim_out = dim

    def forward(self, batch: Data) -> Tensor:
        mapped: Tensor = self.linear(batch.x)
        return mapped


assert_type(Mine(7)(x, edge_index), Tensor)
Mine(7, width=3)  # wrong

# Runs
run = curvlab.load("fpst/web_edu")
assert_type(run, Run)
assert_type(curvlab.train("model=gcn", data=graph), Run)
curvlab.train(model="gcn")  # wrong
curvlab.trane("model=gcn")  # wrong
assert_type(run.predict(k=3), pd.DataFrame)
assert_type(run.predict(graph, nodes=["a", "b"], unlabelled=True), pd.DataFrame)
assert_type(run.predict(queries=[("head", "relation", None)], known=False), pd.DataFrame)
run.predict(kk=3)  # wrong
run.predict(k="three")  # wrong
assert_type(run.embed(), Tensor)
assert_type(run.model, Encoder)
run.model.no_such_attribute()  # wrong

"""Each graph network is built from the size of its inputs alone."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.splits.halved_validation import HalvedValidation
from curvlab.data.transforms.graph import NormalisedAdjacency, SparseAdjacency
from curvlab.data.transforms.relations import NeighbourRelations
from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.errors import UsageError
from curvlab.models.chebnet import ChebNet
from curvlab.models.dropedge import DropEdge
from curvlab.models.gat import GAT
from curvlab.models.gcn import GCN
from curvlab.models.graphgps import GraphGPS
from curvlab.models.graphormer import Graphormer
from curvlab.models.graphtrans import GraphTrans
from curvlab.models.hat import HAT
from curvlab.models.hgat import HGAT
from curvlab.models.hgcn import HGCN
from curvlab.models.hgnn import HGNN
from curvlab.models.hybonet import HyboNet
from curvlab.models.idgl import IDGL
from curvlab.models.kappa_gcn import KappaGCN
from curvlab.models.lds import LDS
from curvlab.models.lrn import LRN
from curvlab.models.lrn_sgformer import LRNSGFormer
from curvlab.models.mlp import MLP
from curvlab.models.nodeformer import NodeFormer
from curvlab.models.q_gcn import QGCN
from curvlab.models.sage import GraphSAGE
from curvlab.models.sgc import SGC
from curvlab.models.sgformer import SGFormer
from curvlab.models.sign import SIGN
from curvlab.models.transformer import NodeTransformer

KINDS = [
    ChebNet, DropEdge, GAT, GCN, GraphGPS, Graphormer, GraphSAGE, GraphTrans, HAT, HGAT, HGCN,
    HGNN, HyboNet, KappaGCN, LRN, LRNSGFormer, MLP, NodeFormer, NodeTransformer, QGCN, SGC,
    SGFormer, SIGN,
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")


@pytest.fixture
def prepared(graph) -> Data:
    """The small graph with all that one of them reads."""
    graph.y = torch.arange(12) % 3
    for part, mask in zip(("train", "val", "test"), torch.eye(3).bool()[graph.y].T, strict=True):
        graph[f"{part}_mask"] = mask
    for transform in (
        SparseAdjacency(self_loops=True), NormalisedAdjacency(self_loops=True),
        NeighbourRelations(1), ShortestPaths(20), HalvedValidation(),
    ):  # fmt: skip
        graph = transform(graph)
    return graph


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_needs_the_size_of_its_inputs_alone(kind, prepared):
    torch.manual_seed(0)
    made = kind(in_channels=5)
    embedded = made(prepared)
    assert embedded.shape == (12, made.dim_out)
    assert embedded.isfinite().all()
    assert not made.gives_logits


def test_models_of_classes_take_them_from_the_data(prepared):
    for made in (IDGL(5, num_classes=3), LDS(5, num_classes=3, graph=prepared)):
        assert made(prepared).shape == (12, 3)
        assert made.gives_logits
        assert made.tasks == ("node_classification",)


@pytest.mark.parametrize("kind", [GAT, HAT, GraphTrans, GraphGPS, Graphormer, NodeTransformer])
def test_heads_that_do_not_divide_the_width_are_refused(kind):
    with pytest.raises(UsageError, match=r"heads=3 does not divide dim=16; 1, 2, 4"):
        kind(5, dim=16, heads=3)
    with pytest.raises(UsageError, match=r"components=3 does not divide dim=16"):
        KappaGCN(5, components=3)

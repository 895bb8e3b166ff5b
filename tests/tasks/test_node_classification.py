"""Node classification on a graph of planted classes."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph

from curvlab.data.transforms.graph import LaplacianEigenvectors
from curvlab.errors import UsageError
from curvlab.models import FPST, GCN
from curvlab.optim import Adam
from curvlab.tasks.node_classification import NodeClassification

SIZES = (30, 30, 30)


@pytest.fixture
def graph():
    """Three classes of thirty nodes, told by their edges; features are noise around weak means."""
    links = torch.full((3, 3), 0.02) + 0.25 * torch.eye(3)
    edge_index = stochastic_blockmodel_graph(list(SIZES), links)
    y = torch.repeat_interleave(torch.arange(3), torch.tensor(SIZES))
    data = Data(x=torch.randn(90, 8), y=y, edge_index=edge_index, num_nodes=90)
    data.x[torch.arange(90), y] += 1.0
    part = torch.randperm(90) % 3
    for i, name in enumerate(("train", "val", "test")):
        data[f"{name}_mask"] = part == i
    return LaplacianEigenvectors(4)(data)


def gcn():
    return GCN(in_channels=8, dim=8, layers=2, dropout=0.2, skip_average=False)


def fpst():
    return FPST(8, dim=8, dropout=0.2, eigenvectors=4, sign_flips=True)


def task(encoder, **options):
    optimizer = Adam(curvature_lr=1e-4, weight_decay=5e-4)
    return NodeClassification(encoder, optimizer=optimizer, **{"num_classes": 3, **options})


# A GCN averages over neighbours; attention without hops has to find the class in the node itself.
@pytest.mark.parametrize("encoder", [gcn, fpst])
def test_only_the_training_nodes_are_learnt_from(graph, encoder):
    """Other nodes' labels change neither the loss nor its gradients."""

    def loss_and_gradients(data):
        torch.manual_seed(0)
        made = task(encoder())
        made.training_step(data, 0).backward()
        torch.manual_seed(1)
        loss = made.training_step(data, 0)
        return loss, [p.grad for p in made.parameters()]

    other = graph.clone()
    other.y = torch.where(graph.train_mask, graph.y, (graph.y + 1) % 3)
    torch.testing.assert_close(loss_and_gradients(other), loss_and_gradients(graph), rtol=0, atol=0)
    other.y = (graph.y + 1) % 3
    assert loss_and_gradients(other)[0] != loss_and_gradients(graph)[0]


def without(graph, *names):
    graph = graph.clone()
    for name in names:
        del graph[name]
    return graph


def test_a_graph_that_cannot_be_classified_is_refused(graph):
    made = task(gcn())
    for broken, answer in [
        (without(graph, "y"), "no labels"),
        (without(graph, "val_mask"), "no split: choose one"),
    ]:
        with pytest.raises(UsageError, match=answer):
            made.training_step(broken, 0)
    graph.test_mask[:] = False
    with pytest.raises(UsageError, match="no test nodes"):
        made.training_step(graph, 0)


@pytest.mark.parametrize("part", ["val", "test"])
@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"num_classes": 1, "metric": "roc_auc"}, (90,)),
        ({"num_classes": 2, "metric": "f1_binary"}, (90,)),
        ({"num_classes": 3, "multi_label": True, "metric": "f1_micro"}, (90, 3)),
    ],
)
def test_a_metric_of_a_part_that_is_labelled_alike_is_refused(graph, part, options, shape):
    graph.y = torch.randint(2, shape)
    graph.y[graph[f"{part}_mask"]] = 0
    one = "have the same labels" if len(shape) == 2 else "are of class 0"
    says = f"30 {part} nodes {one}, where {options['metric']} is not defined"
    with pytest.raises(UsageError, match=says):
        task(gcn(), **options).training_step(graph, 0)


class Supervised(GCN):
    """A network that trains on multiples of its output, too, and costs something."""

    def training_loss(self, batch, loss, nodes=None):
        out = self.forward_nodes(batch, nodes)
        return loss(out) + (loss(2 * out) + loss(-out)) / 2 + 0.25


def test_an_encoder_makes_its_loss_of_the_losses_of_several_embeddings(graph):
    encoder = gcn()
    encoder.__class__ = Supervised
    made = task(encoder).eval()  # no dropout, so that what follows sees the same
    made.training = True
    loss = made.training_step(graph, 0)
    nodes = graph.train_mask.nonzero().squeeze(1)

    def cross_entropy(embedded):
        return F.cross_entropy(made.decoder(embedded[nodes]), graph.y[nodes])

    out = encoder(graph)
    later = (cross_entropy(2 * out) + cross_entropy(-out)) / 2
    torch.testing.assert_close(loss, cross_entropy(out) + later + 0.25)

"""Tasks are built from their signatures."""

import pytest
import torch
from torch import nn

from curvlab.config.schema import attribute, is_subclass, options_of
from curvlab.layers import LorentzResidual
from curvlab.manifolds import Euclidean, Lorentz
from curvlab.models.encoder import Encoder
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import FROM_DATA
from curvlab.tasks.cost.inference import Inference
from curvlab.tasks.cost.residual import ResidualCost
from curvlab.tasks.cost.steps import ClassificationCost, CompletionCost, PreparationCost
from curvlab.tasks.filter_regression import FilterRegression
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.labels import kind_of_labels
from curvlab.tasks.link_prediction import LinkPrediction
from curvlab.tasks.node_classification import NodeClassification
from curvlab.tasks.reconstruction import Reconstruction

FROM_GRAPHS = {"num_classes": 3, "preparation_seconds": 0.5}


class Same(Encoder):
    """Returns the features; it has a residual connection to be timed."""

    manifold_out = Euclidean()
    dim_out = 4

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.residual = LorentzResidual(Lorentz())

    def forward(self, batch):
        return self.linear(batch.x)


class Scores(TripleScorer, Same):
    """A model of triples."""

    num_entities = 5

    def scores(self, batch):
        return self(batch)


@pytest.mark.parametrize(
    "task",
    [ClassificationCost, FilterRegression, Inference, LinkPrediction, NodeClassification,
     PreparationCost, Reconstruction, ResidualCost, KnowledgeGraphCompletion, CompletionCost],
)  # fmt: skip
def test_a_task_is_built_from_its_defaults(task):
    target = f"{task.__module__}.{task.__name__}"
    options = options_of(target)
    data = [name for name, option in options.items() if FROM_DATA in option.marks]
    triples = issubclass(task, KnowledgeGraphCompletion)
    encoder = Scores() if triples else Same()
    made = task(encoder, **{name: FROM_GRAPHS[name] for name in data if name in FROM_GRAPHS})
    optimizer = made.configure_optimizers()
    assert isinstance(optimizer, torch.optim.Adam)
    assert isinstance(made.score, str)
    assert (attribute(target, "data_kind") == "triples") == triples
    assert all(option.doc for option in options.values() if option.settable)
    assert is_subclass(target, "curvlab.tasks.task.Task")


def test_without_a_metric_it_is_the_first_of_the_labels():
    for classes, several, first in ((3, False, "accuracy"), (3, True, "f1_micro")):
        task = NodeClassification(Same(), classes, several)
        assert task.score == first == next(iter(kind_of_labels(classes, several).metrics))

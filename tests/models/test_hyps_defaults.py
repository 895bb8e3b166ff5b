"""Hypformer, CAT, the networks of tokens and spectra, and models of triples from their defaults."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.data.transforms.spectrum import LaplacianSpectrum
from curvlab.errors import UsageError
from curvlab.models.bernnet import BernNet
from curvlab.models.cat import CAT
from curvlab.models.chebnet2 import ChebNetII
from curvlab.models.gprgnn import GPRGNN
from curvlab.models.hypformer import Hypformer
from curvlab.models.nagphormer import NAGphormer
from curvlab.models.polyattn import PolyAttn
from curvlab.models.polyformer import PolyFormer
from curvlab.models.specformer import Specformer
from curvlab.models.specformer_large import LargeSpecformer
from curvlab.models.triples.atth import AttH
from curvlab.models.triples.complex import ComplEx
from curvlab.models.triples.distmult import DistMult
from curvlab.models.triples.murp import MuRP
from curvlab.models.triples.relation_frequency import RelationFrequency
from curvlab.models.triples.reverse_lookup import ReverseLookup
from curvlab.models.triples.rotate import RotatE
from curvlab.models.triples.roth import RotH
from curvlab.models.triples.transe import TransE
from curvlab.models.unifilter import UniFilter

OF_GRAPHS = (
    Hypformer, CAT, PolyFormer, PolyAttn, UniFilter, NAGphormer, Specformer, LargeSpecformer,
    GPRGNN, BernNet, ChebNetII,
)  # fmt: skip
OF_TRIPLES = (CAT, TransE, DistMult, ComplEx, RotatE, MuRP, RotH, AttH)
FLOORS = (RelationFrequency, ReverseLookup)

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")


@pytest.mark.parametrize("kind", OF_GRAPHS)
def test_a_model_needs_the_size_of_its_inputs_alone(kind, graph):
    for transform in (NormalisedAdjacency(True), PolynomialTokens(), LaplacianSpectrum(None, 0)):
        graph = transform(graph)
    torch.manual_seed(0)
    made = kind(in_channels=5)
    embedded = made(graph)
    assert embedded.shape == (12, made.dim_out)
    assert embedded.isfinite().all()
    assert not made.gives_logits


@pytest.mark.parametrize("kind", OF_TRIPLES + FLOORS)
def test_a_model_of_triples_needs_the_numbers_of_both(kind):
    triples = torch.tensor([[0, 1, 2], [1, 0, 1], [4, 4, 3]])
    seen = {"train_triples": triples} if kind in FLOORS else {}
    made = kind(num_entities=5, num_relations=2, **seen)
    scores = made.scores(Data(head=triples[0], relation=triples[1]))
    assert scores.shape == (3, made.num_entities) == (3, 5)
    assert scores.isfinite().all()


@pytest.mark.parametrize("kind", [Specformer, GPRGNN, BernNet, ChebNetII])
def test_logits_are_as_many_as_classes(kind):
    assert kind(5, logits=True, classes=3).dim_out == 3
    assert kind(5, logits=True, classes=3).gives_logits
    assert kind(5, classes=3).dim_out == kind(5).dim_out


def test_widths_follow_that_of_the_model():
    assert Hypformer(5, dim=6).dim_out == 12
    assert PolyFormer(5, dim=6).feed_forwards[0].inner.out_features == 6
    assert Hypformer(5).linear_maps == 2
    for alone in ({"graph": False}, {"transformer": False}, {"fusion": "midpoint", "dim": 1}):
        assert Hypformer(5, **alone).linear_maps == 1


@pytest.mark.parametrize("kind", [PolyFormer, PolyAttn, NAGphormer, Specformer])
def test_heads_that_do_not_divide_the_width_are_refused(kind):
    with pytest.raises(UsageError, match=r"heads=3 does not divide dim=8"):
        kind(5, dim=8, heads=3)

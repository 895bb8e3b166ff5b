"""The label of a model follows its options."""

import pytest

from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices


@pytest.mark.parametrize(
    ("overrides", "label"),
    [
        (["model=polyformer"], "PolyFormer (Mono)"),
        (["model=polyformer", "model.basis=cheb"], "PolyFormer (Cheb)"),
        (["model=polyformer", "model.basis=mono"], "PolyFormer (Mono)"),
        (["model=polyformer_cheb", "model.basis=mono"], "PolyFormer (Mono)"),
        (["model=polyattn_cheb", "model.basis=mono"], "PolyAttn (Mono)"),
        (["model=unifilter_mono", "model.basis=cheb"], "UniFilter (Cheb)"),
        (["model=polyformer", "model.basis=bern"], "PolyFormer, basis=bern"),
        (["model=cat", "model.branches=[hyperbolic]"], "Fixed-Hyperbolic"),
        (["model=cat_hyperbolic", "model.branches=[spherical]"], "Fixed-Spherical"),
        (
            ["model=cat_hyperbolic", "model.branches=[spherical,euclidean]"],
            "Fixed-Hyperbolic, branches=[spherical,euclidean]",
        ),
        (["model=lrn", "model.residual.operator=space_addition"], "Space addition"),
        (["model=lrn__space_addition", "model.residual.operator=centroid"], "LRN"),
        (["model=gcn_wide", "model.dim=32"], "GCN"),
        (["model=cat_hyperbolic", "model.dim=32"], "Fixed-Hyperbolic"),
        (["model=hypformer", "model.dropout=0.3"], "Hypformer"),
        (["model=polyformer", "model.basis=cheb", "model.label=mine"], "mine"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_label_is_that_of_the_options(overrides, label):
    assert compose(overrides).model.label == label


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", choices(CONFIGS, "model"))
def test_a_value_that_a_choice_has_already_keeps_its_label(name):
    plain = compose([f"model={name}"])
    dim = plain.model.get("dim")
    again = compose([f"model={name}", *([f"model.dim={dim}"] if dim else [])])
    assert again.model.label == plain.model.label

"""Runs that cannot be: the command's words, and the one sentence that answers them."""

import pytest
from tiny_runs import LARGE, PIXELS, TREE

from curvlab.errors import UsageError

CLASSES = ("recipe=none", *TREE, "model=gcn")
CURVED = ("recipe=none", *TREE, "model=hypformer")
LINKS = ("task=link_prediction", *TREE[:3], "model=gcn")
SIGNAL = (*PIXELS, "model=polyattn_cheb")
TOKENS = (*LARGE, "batching=tokens", "batching.workers=0")
ADDITION = ("dataset=random_points", "dataset.source.num_nodes=50", "dataset.source.dim=8")
CASES = [
    (CLASSES, "task.metric=recall", "recall.*accuracy, f1_micro, f1_macro"),
    (CLASSES, "model.last_activation=true model.skip_average=true", "set one of them to false"),
    (CLASSES, "trainer.validate_every=41", "validate_every=41 exceeds trainer.max_steps=40"),
    (CLASSES, "split=none", "needs a split of the nodes"),
    (CLASSES, "task=inference", "has no task inference"),
    (CLASSES, "batching=partition trainer.cuda_graph=true", "one device on one whole graph"),
    (CURVED, "manifold=euclidean", "cannot be built with manifold=euclidean; it can with lorentz"),
    (CURVED, "model.graph=false model.transformer=false", "leave no branch: keep one of them"),
    (CURVED, "task.decoder=prototype", "prototype: there is none on Euclidean space"),
    (CURVED, "task.decoder=stereographic model.fusion=midpoint", "there is none on Lorentz space"),
    (CURVED, "model.fusion=midpoint optimizer=adam", "use optimizer=adam_classification"),
    (LINKS, "task.metric=accuracy", "links are scored by roc_auc"),
    (LINKS, "task.split.val=0.9", "their sum must be below 1"),
    (SIGNAL, "split=random_60_20_20", "no labels|scored nodes: use split=fit"),
    (SIGNAL, "task.metric=sse", "selects weights by r2"),
    (SIGNAL, "batching=partition", "the loss of task=filter_regression is of the whole graph"),
    (("dataset=cora",), "task=filter_regression", "cora has no task filter_regression"),
    (TOKENS, "model=gcn", "choose a model of tokens, such as polyformer"),
    (TOKENS, "model=nagphormer", "choose a model of tokens, such as polyformer"),
    (TOKENS, "model=specformer", "needs the whole graph in every step"),
    (TOKENS, "model=polyformer batching.memory_gb=1e-9", "raise batching.memory_gb"),
    (LARGE, "model=gcn_nsampler batching.fan_outs=[4,0]", "fan_outs="),
    (ADDITION, "model=hybonet", "this model has none: use model=lrn"),
    (ADDITION, "model=lrn model.layers=1", "this model has none: use model=lrn"),
]


@pytest.mark.parametrize(("start", "words", "answer"), CASES, ids=[case[1] for case in CASES])
def test_what_cannot_be_is_one_sentence(run_here, start, words, answer):
    with pytest.raises(UsageError, match=answer) as refused:
        run_here(*start, *words.split())
    assert "\n" not in str(refused.value)

"""A table of entities in two processes makes the losses, gradients and ranks of one table."""

import pytest
import torch
import two_processes as work
from torch.nn.functional import cross_entropy

from curvlab.errors import UsageError
from curvlab.finite import DivergedError
from curvlab.metrics.ranking import standings
from curvlab.models.triples.murp import MuRP
from curvlab.models.triples.rotate import RotatE
from curvlab.optim import RowwiseAdagrad
from curvlab.run.distributed import launch
from curvlab.tasks.one_vs_all import one_vs_all_loss
from curvlab.tasks.sharded_entities import shard_entities, sharded_loss, sharded_standings

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    launch(work.score_shards, 2, str(folder))
    return [torch.load(folder / f"shards{rank}.pt", weights_only=True) for rank in range(2)]


def whole(name, found):
    """The model of one process, with the table of both."""
    model = work.scorer(name, work.ENTITIES)
    entities = next(m.entities for m in model.modules() if hasattr(m, "entities"))
    others = [p for p in model.parameters() if p is not entities.weight]
    with torch.no_grad():
        entities.weight.copy_(torch.cat([part[name]["table"] for part in found]))
        for parameter, value in zip(others, found[0][name]["others"], strict=True):
            parameter.copy_(value)
    return model, entities.weight, others


@pytest.mark.slow
@pytest.mark.parametrize("name", work.SCORERS)
class TestTwoProcesses:
    def test_ranks_are_those_of_one_table(self, name, shards):
        model, *_ = whole(name, shards)
        batch, known, _ = work.triples()
        expected = standings(model.scores(batch), batch.tail, known)
        expected = [part for standing in expected for part in standing]
        assert any(a.ne(b).any() for a, b in zip(expected[:2], expected[2:], strict=True))
        for part in shards:
            for ours, theirs in zip(part[name]["standings"], expected, strict=True):
                assert ours.tolist() == theirs.tolist()

    @pytest.mark.parametrize("kind", ["all", "sampled"])
    def test_loss_and_gradients_are_those_of_one_table(self, name, kind, shards):
        model, table, others = whole(name, shards)
        batch, _, negatives = work.triples()
        if kind == "all":
            scores, sources = model.block_scores(batch)
            shape = len(batch.tail), work.ENTITIES
            truth = torch.arange(len(batch.tail)), batch.tail, 0.1
            loss = one_vs_all_loss(scores, sources, shape, *truth)
        else:
            chosen = torch.cat([negatives, batch.tail]).unique()
            scores = model.scores(batch)[:, chosen]
            target = torch.full_like(scores, 0.1 / (len(chosen) - 1))
            target[torch.arange(len(scores)), torch.searchsorted(chosen, batch.tail)] = 0.9
            loss = cross_entropy(scores, target)
        auxiliary = model.auxiliary_loss()
        loss = loss if auxiliary is None else loss + auxiliary
        loss.backward()
        for part in (found[name][kind] for found in shards):
            torch.testing.assert_close(part["loss"], loss.detach(), rtol=1e-9, atol=0)
            for ours, parameter in zip(part["others"], others, strict=True):
                assert (ours is None) == (parameter.grad is None)
                if ours is not None:
                    torch.testing.assert_close(ours, parameter.grad, rtol=1e-8, atol=1e-12)
            assert part["sparse"] == (kind == "sampled")
        together = torch.cat([found[name][kind]["shard"] for found in shards])
        torch.testing.assert_close(together, table.grad, rtol=1e-8, atol=1e-12)

    def test_steps_move_the_rows_of_the_batch_only(self, name, shards):
        batch, _, negatives = work.triples()
        touched = torch.cat([batch.head, batch.tail, negatives]).unique()
        before = torch.cat([found[name]["table"] for found in shards])
        after = torch.cat([found[name]["moved"] for found in shards])
        assert before.ne(after).any(1).nonzero().squeeze(1).tolist() == touched.tolist()
        # one process, one shard: the same steps
        model = work.scorer(name, 1)
        table = shard_entities(model, work.ENTITIES)
        assert table.shard.equal(before), "the values do not depend on the number of processes"
        optimizer = RowwiseAdagrad([table.shard], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            sharded_loss(model, batch, negatives).backward()
            optimizer.step()
        torch.testing.assert_close(after, table.shard.detach(), rtol=1e-8, atol=1e-10)
        assert sum(found[name]["state"] for found in shards) == work.ENTITIES


def test_equal_entities_tie():
    """A tail whose row all entities have ties with all others, in all blocks."""
    model = work.scorer("complex", 1)
    shard_entities(model, work.ENTITIES)
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 0.5)  # whose sums are exact in any order
    batch, known, _ = work.triples()
    filtered, raw = sharded_standings(model, batch, known)
    assert not raw.above.any()
    assert not filtered.above.any()
    assert (raw.tied == work.ENTITIES - 1).all()


def test_scores_that_are_not_finite_are_refused():
    model = work.scorer("complex", 1)
    table = shard_entities(model, work.ENTITIES)
    table.shard.data[5] = torch.nan
    with pytest.raises(DivergedError):
        sharded_standings(model, work.triples()[0])


def test_a_dense_gradient_moves_rows_as_a_sparse_one():
    torch.manual_seed(0)
    start, gradient = torch.randn(4, 3), torch.randn(4, 3)
    moved = []
    for given in (gradient, gradient.to_sparse(1)):
        parameter = torch.nn.Parameter(start.clone())
        optimizer = RowwiseAdagrad([parameter], lr=0.5)
        for _ in range(2):
            parameter.grad = given.clone()
            optimizer.step()
        moved.append(parameter.detach())
    # the first step by g / |g|, the second by g / sqrt(2) |g|, with |g| the root mean square
    step = 0.5 * (1 + 2**-0.5) * gradient / gradient.square().mean(1, keepdim=True).sqrt()
    for one in moved:
        torch.testing.assert_close(one, start - step)


def test_what_cannot_be_in_shards_says_so():
    with pytest.raises(UsageError, match="MuRP: its scores are no function"):
        shard_entities(MuRP(num_entities=1, num_relations=3), 100)
    model = RotatE(num_entities=1, num_relations=3)
    with pytest.raises(UsageError, match="not in shards"):
        sharded_loss(model, work.triples()[0])
    shard_entities(model, work.ENTITIES)
    with pytest.raises(UsageError, match="no process has all rows"):
        model.scores(work.triples()[0])

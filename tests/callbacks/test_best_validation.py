"""The weights of the best validation, and the end of a run that no longer improves."""

import pytest
import torch
from lightning import Callback
from torch import Tensor, nn

from curvlab.callbacks import BestValidation, best_validation

SCORES = [10, 40, 30, 40, 50, 20, 20, 20, 20, 20, 20, 60]  # after steps 1, 2, ...


@pytest.fixture
def scored(small):
    """The small module, whose weight counts the steps, with a validation score for each step."""

    class Scored(small):
        def __init__(self, scores=SCORES):
            super().__init__()
            self.scores = torch.tensor(scores, dtype=torch.float32)
            self.looks = []
            self.noise = nn.Dropout()

        def validation_score(self, batch) -> Tensor:
            assert not self.training
            assert not torch.is_grad_enabled()
            step = int(self.counting.weight.item())
            self.looks.append(step)
            return self.scores[min(step, len(self.scores)) - 1]

    return Scored


def chosen(fit, module, steps, interval=1, patience=None, min_steps=1, **options):
    best = BestValidation(interval, patience, min_steps)
    trainer = fit(module, [best], steps, **options)
    end = int(module.counting.weight.item())
    best.restore(module)
    return best.step, int(module.counting.weight.item()), end, trainer.global_step


def test_best_weights_are_kept_not_the_last(fit, scored):
    module = scored()
    assert chosen(fit, module, steps=10) == (5, 5, 10, 10)
    assert module.looks == list(range(1, 11))
    assert module.training


def test_of_equal_scores_the_first_counts(fit, scored):
    assert chosen(fit, scored([10, 40, 30, 40, 40]), steps=5)[:2] == (2, 2)


def test_a_score_that_is_not_a_number_is_never_better(fit, scored):
    assert chosen(fit, scored([float("nan"), 1, float("nan"), 0]), steps=4)[:2] == (2, 2)


def test_without_any_score_that_is_a_number_the_last_weights_stay(fit, scored):
    assert chosen(fit, scored([float("nan")]), steps=4)[:3] == (0, 4, 4)


@pytest.mark.parametrize("batches", [1, 3])
def test_only_every_so_many_steps_are_looked_at(fit, scored, batches):
    module = scored()
    assert chosen(fit, module, steps=12, interval=4, batches=batches)[:2] == (12, 12)
    assert module.looks == [4, 8, 12]
    assert chosen(fit, scored(), steps=10, interval=4)[:2] == (4, 4)


@pytest.mark.parametrize(
    ("patience", "best", "end"),
    [
        (1, 2, 5),  # step 3 is no better; the epoch of five steps is finished, and chooses nothing
        (3, 5, 10),  # step 8
        (6, 5, 15),  # step 11, one before a better score
        (7, 12, 20),  # step 19
        (None, 12, 20),
    ],
)
def test_patience_counts_steps_and_the_rest_of_the_epoch_chooses_nothing(
    fit, scored, patience, best, end
):
    assert chosen(fit, scored(), steps=20, patience=patience) == (best, best, end, end)


def test_no_run_ends_before_its_least_number_of_steps(fit, scored):
    assert chosen(fit, scored(), steps=20, patience=1, min_steps=12) == (12, 12, 15, 15)


class Snapshot(Callback):
    """Writes a checkpoint after an epoch, as a run does."""

    def __init__(self, path, epoch):
        self.path, self.epoch = path, epoch

    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.current_epoch == self.epoch:
            trainer.save_checkpoint(self.path)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("patience", [3, 7])
def test_an_interrupted_run_ends_as_if_it_had_not_been(fit, scored, tmp_path, patience, epoch):
    """Also when it was interrupted between its end and the writing of its result."""
    whole = BestValidation(1, patience, 1)
    fit(scored(), [whole, Snapshot(tmp_path / "last.ckpt", epoch)], 20)
    again, module = BestValidation(1, patience, 1), scored()
    trainer = fit(module, [again], 20, checkpoint=tmp_path / "last.ckpt")
    assert again.step == whole.step
    assert trainer.global_step == (10 if patience == 3 else 20)
    assert again.weights.keys() == module.state_dict().keys()
    assert all(torch.equal(again.weights[name], whole.weights[name]) for name in whole.weights)


@pytest.mark.parametrize("waits", [True, False])
def test_weights_are_chosen_on_a_device_without_asking_it_for_a_number(
    fit, scored, monkeypatch, waits
):
    monkeypatch.setattr(best_validation, "waits_for_device", lambda tensor: waits)
    questions, in_looks = [], []
    ask, look = Tensor.__bool__, BestValidation._look
    monkeypatch.setattr(Tensor, "__bool__", lambda t: questions.append(1) or ask(t))

    def watched(self, score, step):
        before = len(questions)
        look(self, score, step)
        in_looks.append(len(questions) - before)

    monkeypatch.setattr(BestValidation, "_look", watched)
    assert chosen(fit, scored(), steps=10, patience=8) == (5, 5, 10, 10)
    assert in_looks == [0 if waits else 1] * 10

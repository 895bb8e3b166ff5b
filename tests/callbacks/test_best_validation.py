"""The weights of the best validation, and the end of a run that no longer improves."""

import pytest
import torch
from torch import Tensor, nn

from curvlab.callbacks import BestValidation

NAN = float("nan")
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


@pytest.mark.parametrize(
    ("scores", "best"),
    [([10, 40, 30, 40], (2, 2)), ([NAN, 1, NAN, 0], (2, 2)), ([NAN], (0, 4))],
    ids=["the first of equal ones", "a number", "the last without any number"],
)
def test_of_other_scores_the_weights_are_kept_of(fit, scored, scores, best):
    assert chosen(fit, scored(scores), steps=4)[:2] == best


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

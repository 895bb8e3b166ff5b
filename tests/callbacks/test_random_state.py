"""Random numbers of a resumed run go on where the interrupted one stopped."""

import torch

from curvlab.callbacks import RandomState


def test_a_resumed_run_draws_what_the_whole_one_draws(fit, small, tmp_path):
    """Through a checkpoint of the trainer."""

    class Noisy(small):
        def __init__(self):
            super().__init__()
            self.drawn = []

        def training_step(self, batch, batch_idx):
            self.drawn.append(torch.rand(()).item())
            return super().training_step(batch, batch_idx)

    torch.manual_seed(0)
    whole = Noisy()
    fit(whole, [RandomState()], steps=15)

    torch.manual_seed(0)
    fit(Noisy(), [RandomState()], steps=10).save_checkpoint(tmp_path / "last.ckpt")
    torch.manual_seed(99)
    resumed = Noisy()
    fit(resumed, [RandomState()], steps=15, checkpoint=tmp_path / "last.ckpt")
    assert resumed.drawn == whole.drawn[10:]

"""Losses of sampled negative triples, and regularisers of embeddings.

Ruffinelli et al. 2020, "You CAN teach an old dog new tricks! On training knowledge graph
embeddings", compare them.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

SAMPLED: Mapping[str, Callable[..., Tensor]] = {
    "softmax": lambda p, n, *_: torch.cat([p, n], 1).logsumexp(1) - p[:, 0],
    "bce": lambda p, n, *_: F.softplus(-p)[:, 0] + F.softplus(n).sum(1),
    "margin": lambda p, n, margin, _: F.relu(margin + n - p).mean(1),
    # Sun et al. 2019, equations 4 and 5
    "self_adversarial": lambda p, n, margin, temperature: (
        (
            F.softplus(-margin - p)[:, 0]
            + ((temperature * n).softmax(1).detach() * F.softplus(margin + n)).sum(1)
        )
        / 2
    ),
}
"""Losses `[triples]` of the scores p `[triples, 1]` of true triples and n `[triples, negatives]` of
sampled ones, of margin and temperature; a score of -inf adds nothing."""

REGULARIZERS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    # Lacroix et al. 2018, equation 7
    "n3": lambda moduli, _: moduli.pow(3).sum((0, -1)) / 3,
    "l2": lambda moduli, _: moduli.square().sum((0, -1)) / 2,
    # Zhang et al. 2020, equation 5: the side of the tail; inverse relations have the head's
    "dura": lambda moduli, query: query.square().sum(-1) + moduli[2].square().sum(-1),
}
"""Costs `[triples]` of the moduli `[3, triples, dim]` of head, relation and tail, and of the
query's embedding `[triples, dim]`."""


def corrupt(
    triples: Tensor,
    negatives: int,
    entities: int,
    head_share: Tensor | float,
    both: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace the head or the tail of triples `[3, triples]` by entities drawn uniformly.

    The head is replaced with probability `head_share`, a number or `[triples]`, else the tail; or
    `both`, each by a draw of its own. Returns three columns `[triples, negatives]`.
    """
    head, relation, tail = (column.unsqueeze(1).expand(-1, negatives) for column in triples)
    drawn = torch.randint(entities, head.shape, device=head.device)
    if both:
        return torch.randint_like(drawn, entities), relation, drawn
    side = torch.rand(head.shape, device=head.device) < torch.as_tensor(
        head_share, device=head.device
    ).reshape(-1, 1)
    return torch.where(side, drawn, head), relation, torch.where(side, tail, drawn)

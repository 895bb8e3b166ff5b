"""Postings of ten newsgroups, as bags of words (scikit-learn's 20 newsgroups)."""

import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from torch import Tensor

from curvlab.data.transforms.nearest_neighbours import NearestNeighbourGraph
from curvlab.errors import UsageError
from curvlab.options import Fraction

FOLDERS = ("20news-bydate-train", "20news-bydate-test")  # both are used
ENCODING = "latin1"


class NewsgroupsGraph(NearestNeighbourGraph):
    """Postings with all their headers; features are the TF-IDF of words that are not too rare.

    `x_dw = n_dw (1 + ln(N / N_w))`, rows of length 1: n_dw how often document d has word w, N_w how
    many of the N documents have it. English stop words are left out. Postings are in the order of
    their groups, of training and test folder and of their names.

    Args:
        categories: newsgroups, which are the classes, numbered in the order of their names.
        min_share: smallest fraction of the postings that a word must be in.
        **options: of `NearestNeighbourGraph`; the one file is scikit-learn's archive.

    Source: Hypformer, Table 3; scikit-learn's `fetch_20newsgroups(subset="all")`.
    """

    def __init__(
        self,
        categories: Sequence[str] = (
            "alt.atheism",
            "comp.sys.ibm.pc.hardware",
            "misc.forsale",
            "rec.autos",
            "rec.sport.hockey",
            "sci.crypt",
            "sci.electronics",
            "sci.med",
            "sci.space",
            "talk.politics.guns",
        ),
        min_share: Fraction = 0.05,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.categories = sorted(categories)
        self.min_share = min_share

    @property
    def variant(self) -> str:
        """The number of neighbours and the smallest share."""
        return f"{super().variant}-{self.min_share:g}"

    def points(self, paths: list[Path]) -> tuple[Tensor, Tensor]:
        """Read the archive without unpacking it.

        Raises:
            UsageError: It has no posting of one of the groups.
        """
        texts = self._texts(paths[0])
        number = {category: position for position, category in enumerate(self.categories)}
        y = [number[place.parent.name] for place in texts]
        missing = [category for category in self.categories if number[category] not in y]
        if missing:
            raise UsageError(
                f"{paths[0]} has no posting of {', '.join(missing)}: it is not scikit-learn's "
                "20news-bydate.tar.gz; delete it and run again to fetch a fresh copy."
            )
        counts = CountVectorizer(stop_words="english", min_df=self.min_share)
        weights = TfidfTransformer(smooth_idf=False)
        x = weights.fit_transform(counts.fit_transform(texts.values()))
        return torch.from_numpy(x.toarray().astype(np.float32)), torch.tensor(y)

    def _texts(self, path: Path) -> dict[PurePosixPath, str]:
        """The postings of the groups by their places, in order."""
        texts = {}
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                if (
                    member.isfile()
                    and len(place.parts) == 3
                    and place.parts[0] in FOLDERS
                    and place.parent.name in self.categories
                ):
                    file = archive.extractfile(member)
                    assert file is not None
                    texts[place] = file.read().decode(ENCODING)
        order = sorted(
            texts, key=lambda place: (place.parent.name, FOLDERS.index(place.parts[0]), place.name)
        )
        return {place: texts[place] for place in order}

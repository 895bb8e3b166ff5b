"""Postings of ten newsgroups, as bags of words (scikit-learn's 20 newsgroups)."""

import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from torch import Tensor

from curvlab.data.transforms.nearest_neighbours import NearestNeighbourGraph
from curvlab.options import Fraction

FOLDERS = ("20news-bydate-train", "20news-bydate-test")  # both are used


class NewsgroupsGraph(NearestNeighbourGraph, kw_only=True):
    """Postings with all their headers; features are the TF-IDF of words that are not too rare.

    `x_dw = n_dw (1 + ln(N / N_w))`, rows of length 1: n_dw how often document d has word w, N_w how
    many of the N documents have it. English stop words are left out.

    Args:
        categories: newsgroups, which are the classes, numbered in the order of their names.
        min_share: smallest fraction of the postings that a word must be in.

    Source: Hypformer, Table 3; scikit-learn's `fetch_20newsgroups(subset="all")`.
    """

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
    )
    min_share: Fraction = 0.05

    @property
    def variant(self) -> str:
        return f"{super().variant}-{self.min_share:g}"

    def points(self, paths: list[Path]) -> tuple[Tensor, Tensor]:
        texts = {}
        categories = sorted(self.categories)
        with tarfile.open(paths[0], "r:gz") as archive:
            for member in archive:
                folder, *rest = PurePosixPath(member.name).parts
                if member.isfile() and folder in FOLDERS and rest[0] in categories:
                    file = archive.extractfile(member)
                    assert file is not None
                    texts[rest[0], FOLDERS.index(folder), rest[1]] = file.read().decode("latin1")
        order = sorted(texts)
        counts = CountVectorizer(stop_words="english", min_df=self.min_share)
        weights = TfidfTransformer(smooth_idf=False)
        x = weights.fit_transform(counts.fit_transform([texts[place] for place in order]))
        y = torch.tensor([categories.index(category) for category, *_ in order])
        return torch.from_numpy(x.toarray().astype(np.float32)), y

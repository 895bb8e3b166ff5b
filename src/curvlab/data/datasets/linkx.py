"""Two large non-homophilous graphs of LINKX's benchmark: Twitch-gamers and Pokec."""

import io
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import torch
from scipy.io import loadmat
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN_MASKS, LabelledGraph
from curvlab.data.files.pickles import RestrictedUnpickler

EDGES = "large_twitch_edges.csv"
NODES = "large_twitch_features.csv"


class TwitchGamers(LabelledGraph):
    """Streamers who follow each other; the class says whether their content is for adults.

    Features, as in LINKX (Lim et al. 2021), are standardised; dates are numbers such as 20180225.
    """

    def read(self, paths: list[Path]) -> Data:
        archive, splits = paths
        with ZipFile(archive) as files:
            names = {Path(name).name: name for name in files.namelist()}
            edges = pd.read_csv(io.BytesIO(files.read(names[EDGES])))
            nodes = pd.read_csv(io.BytesIO(files.read(names[NODES])))
        nodes = nodes.sort_values("numeric_id", kind="stable")
        y = torch.from_numpy(nodes.pop("mature").to_numpy(np.int64).copy())
        x = nodes.drop(columns="numeric_id")
        x["language"] = pd.factorize(x["language"])[0]
        for date in ("created_at", "updated_at"):
            x[date] = x[date].str.replace("-", "").astype(np.int64)
        features = torch.from_numpy(x.to_numpy(np.float64))
        features = (features - features.mean(0)) / features.std(0)
        edge_index = torch.from_numpy(edges.to_numpy(np.int64).T.copy())
        masks = read_splits(splits, len(y))
        return Data(x=features.float(), y=y, edge_index=edge_index, **masks)


class Pokec(LabelledGraph):
    """Users of a social network in Slovakia; the class is their gender, where they say it.

    Source: Leskovec and Krevl 2014; features of LINKX (Lim et al. 2021).
    """

    def read(self, paths: list[Path]) -> Data:
        matrices, splits = paths
        contents = loadmat(matrices)
        y = torch.from_numpy(contents["label"].ravel().astype(np.int64))
        return Data(
            x=torch.from_numpy(contents["node_feat"].astype(np.float32)),
            y=y,
            edge_index=torch.from_numpy(contents["edge_index"].astype(np.int64)),
            labelled=y >= 0,
            **read_splits(splits, len(y)),
        )


def read_splits(path: Path, nodes: int) -> dict[str, Tensor]:
    """Masks `[nodes, splits]` from a NumPy file of dictionaries of `train`, `valid` and `test`."""
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        splits = RestrictedUnpickler(file, encoding="latin1").load()
    masks = {name: torch.zeros(nodes, len(splits), dtype=torch.bool) for name in GIVEN_MASKS}
    for column, split in enumerate(splits):
        for name, part in zip(GIVEN_MASKS, ("train", "valid", "test"), strict=True):
            masks[name][np.asarray(split[part], dtype=np.int64), column] = True
    return masks

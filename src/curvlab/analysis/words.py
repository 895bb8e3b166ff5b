"""Words of figures for the columns of curves and the keys of configurations."""

METRICS = {
    "accuracy": "accuracy",
    "ap": "average precision",
    "f1_macro": "macro-F1",
    "f1_micro": "micro-F1",
    "hits1": "Hits@1",
    "hits3": "Hits@3",
    "hits10": "Hits@10",
    "loss": "training loss",
    "map": "mAP (%)",
    "mean_rank": "mean rank",
    "mrr": "MRR",
    "r2": "R²",
    "roc_auc": "ROC-AUC",
    "sse": "sum of squared errors",
}
KEYS = {"dataset.source.num_nodes": "nodes", "model.dim": "dimensions", "model.layers": "layers"}


def metric_words(column: str) -> str:
    """A column of `metrics.csv` in words, such as `val/mrr` or `kappa/0/1`."""
    kind, _, name = column.partition("/")
    if kind == "kappa":
        layer, _, component = name.partition("/")
        return f"curvature κ of layer {int(layer) + 1}, head {int(component) + 1}"
    if kind == "val":
        return f"validation {metric_words(name)}"
    if column.startswith("raw_"):
        return f"raw {metric_words(column.removeprefix('raw_'))}"
    if column.startswith("routing_"):
        what = column.removeprefix("routing_").replace("_", " ")
        return "entropy of the router" if what == "entropy" else f"weight of the {what} branch"
    return METRICS.get(column, column.replace("_", " "))


def key_words(key: str) -> str:
    """A key of the configuration in words: its last part if there are no others."""
    return KEYS.get(key, key.rpartition(".")[2].replace("_", " "))

"""Metrics that torchmetrics, scikit-learn and ogb do not have."""

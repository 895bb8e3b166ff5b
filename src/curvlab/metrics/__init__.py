"""Metrics that torchmetrics and scikit-learn do not have."""

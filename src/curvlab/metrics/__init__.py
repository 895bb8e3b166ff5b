"""Metrics that torchmetrics and scikit-learn do not have, and those of OGB's evaluator."""

"""Hyperparameter search: the space, the stored study, its trials and its winner."""

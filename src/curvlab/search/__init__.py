"""Search for hyperparameters: the space, the study that is kept, its trials and its winner."""

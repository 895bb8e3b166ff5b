"""Results of runs: their files, folders and identity."""

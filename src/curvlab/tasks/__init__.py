"""Tasks: decoder, loss, metrics and evaluation protocol; one file a task."""

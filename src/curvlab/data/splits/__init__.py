"""Training, validation and test nodes or edges."""

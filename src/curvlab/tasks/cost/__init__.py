"""Tasks that measure time and memory."""

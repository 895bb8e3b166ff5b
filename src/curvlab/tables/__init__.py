"""Tables and figures of the papers: the published numbers next to the reproduced ones."""

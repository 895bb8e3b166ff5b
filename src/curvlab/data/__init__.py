"""Sources (download, checksum, mirror), graphs, transforms, the disk cache and the data module."""

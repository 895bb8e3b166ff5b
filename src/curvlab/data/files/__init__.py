"""Raw files: download, checksums, caches, formats."""

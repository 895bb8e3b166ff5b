"""Transformers and graph networks in curved spaces."""

__version__ = "0.1.0"

"""Configurations: what they must satisfy, and objects from them."""

"""Compose and check configurations, and build objects of them."""

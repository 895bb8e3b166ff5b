"""Keys of W&B that curvlab logs, and their titles."""

STEP = "trainer/global_step"  # of the curves
COSTS = {"cost/ms_per_step": "ms per step", "cost/memory_mb": "MB at the peak"}

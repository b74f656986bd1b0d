"""Kernels written from a region's graph: lowering, scheduling, printing."""

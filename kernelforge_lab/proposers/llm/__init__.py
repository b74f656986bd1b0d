"""Kernels written by language models behind any OpenAI-compatible endpoint."""

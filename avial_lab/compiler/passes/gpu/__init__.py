"""Kernels of GPU tasks."""

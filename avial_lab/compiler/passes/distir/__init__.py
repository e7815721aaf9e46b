"""Tensors that lie on meshes of devices: transforms that place them, and their lowering."""

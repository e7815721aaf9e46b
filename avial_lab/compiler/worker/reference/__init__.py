"""What a run should give, and what it should cost: the sequential reference, and (later) the
model.
"""

"""What runs where and when: task graph, placement, transfers, steps, schedule.

Module's facts -> TaskGraph -> Schedule. Nothing in here knows MLIR.
"""

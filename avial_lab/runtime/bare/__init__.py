"""What runs from a bundle on a machine where nothing is installed: Python, NumPy, and our own.

The folder that `avial-lab bundle` made -> a file of results.
"""

"""The command line: `avial-lab`."""

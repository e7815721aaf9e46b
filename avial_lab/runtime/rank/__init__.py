"""What one rank runs: the engine and what it needs. No compiler, no cluster's client."""

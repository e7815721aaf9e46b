"""What every rank runs: messages, or calls of the ownership runtime."""

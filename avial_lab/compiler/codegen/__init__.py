"""What passes write code with: IR at an insertion point."""

"""Arrays that are recorded: from values to loops on memory."""

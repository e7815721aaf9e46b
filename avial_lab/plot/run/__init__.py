"""Pictures of runs: timelines, messages, rooflines, films."""

"""Pictures of task graphs and schedules."""

"""What a program costs: operations, traffic, demand, schedules."""

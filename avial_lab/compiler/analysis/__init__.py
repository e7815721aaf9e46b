"""What is known of a program before it is rewritten: no module in here changes IR."""

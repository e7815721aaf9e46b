"""A program from within: where every line comes from, what each pass did, what can be counted."""

"""What programs are written in: dialects, attributes, effects, views, remarks."""

"""What all else is built on: errors, boxes, buffers, element types, cache, files, tools."""

"""Pages: code, figures, reports, exports."""

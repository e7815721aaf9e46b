"""What a person sees: the views on a page of their own, and JupyterLab with real notebooks."""

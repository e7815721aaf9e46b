"""Programs packed for machines where nothing is installed (`avial-lab bundle`)."""

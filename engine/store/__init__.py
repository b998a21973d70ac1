"""All that lies on disk between builds: artifacts, records, seals, locks and notes."""

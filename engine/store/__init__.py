"""The store on disk: artifacts, records, seals, locks and notes that stay between builds."""

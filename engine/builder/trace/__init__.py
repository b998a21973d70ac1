"""What a job really reads: recorded in its worker, and compared with the rows of its key."""

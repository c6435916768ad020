"""What people look at: recordings, reports, status."""

"""What this computer is and what it granted."""

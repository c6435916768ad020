"""What is measured, each in a process of its own: `benches.child` starts them."""

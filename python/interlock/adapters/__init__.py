"""Everything that touches one particular robot, simulator or file format."""

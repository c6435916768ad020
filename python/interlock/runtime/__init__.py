"""Glue between the folder on disk and the Rust stages: load, bind, step on a manual clock."""

//! Rings in shared memory: one producer, any number of readers, nobody waits for a reader.
//!
//! A ring is a sealed memfd. The producer copies into the slot after the newest and then names it the newest; a slot
//! carries a sequence lock, so that a reader knows whether what it read was complete. A producer that dies in the
//! middle leaves the newest complete slot as it was.

mod copy;
mod futex;
mod layout;
mod mapping;
mod ring;

pub use ring::{Producer, Ring, Slot, View};

//! The table of modes, every cell and every path.

use std::collections::BTreeSet;

use interlock_core::code::Code;
use interlock_core::mode::{next, Event, Mode, Step};
use proptest::prelude::*;

use crate::plans;
use crate::rig::{Rig, READY};

/// The table typed again: who leads where. Everything that is not here stays or is refused.
const MOVES: &[(Mode, &[Event], Mode)] = {
    use Event as E;
    use Mode as M;
    const LOST: Event = Event::PolicyLost(Code::WorkerDead);
    const LOWER: Event = Event::Degrade(Code::FrozenImage);
    &[
        (M::Idle, &[E::Arm], M::Armed),
        (M::Idle, &[E::DriverLost], M::Faulted),
        (M::Armed, &[E::Start], M::Running),
        (M::Armed, &[E::Takeover], M::Takeover),
        (M::Armed, &[E::Disarm], M::Idle),
        (M::Armed, &[E::Stop, E::Quit, E::TerminalClosed, LOST], M::Stopping),
        (M::Armed, &[E::DriverLost], M::Faulted),
        (M::Running, &[E::Stop, E::Quit, E::TerminalClosed, LOST, E::GoalLost], M::Stopping),
        (M::Running, &[E::Takeover], M::Takeover),
        (M::Running, &[LOWER], M::Degraded),
        (M::Running, &[E::DriverLost], M::Faulted),
        (M::Takeover, &[E::Release, E::Stop, E::Quit, E::TerminalClosed, E::GoalLost], M::Stopping),
        (M::Takeover, &[E::DriverLost], M::Faulted),
        (M::Degraded, &[E::Stop, E::Quit, E::TerminalClosed, LOST, E::GoalLost], M::Stopping),
        (M::Degraded, &[E::Takeover], M::Takeover),
        (M::Degraded, &[LOWER], M::Degraded),
        (M::Degraded, &[E::DriverLost], M::Faulted),
        (M::Stopping, &[E::StopDone], M::Holding),
        (M::Stopping, &[LOST], M::Stopping),
        (M::Stopping, &[E::DriverLost], M::Faulted),
        (M::Holding, &[E::Recover], M::Armed),
        (M::Holding, &[E::Disarm], M::Idle),
        (M::Holding, &[E::Quit, E::TerminalClosed, LOST], M::Stopping),
        (M::Holding, &[E::DriverLost], M::Faulted),
        (M::Faulted, &[E::Disarm], M::Idle),
    ]
};

const REQUESTS: [Event; 7] =
    [Event::Arm, Event::Start, Event::Recover, Event::Disarm, Event::Takeover, Event::Release, Event::Stop];

#[test]
fn every_cell_of_the_table_is_as_written_here() {
    for mode in Mode::ALL {
        for event in Event::ALL {
            let listed = MOVES.iter().find(|(from, events, _)| from == mode && events.contains(event));
            match (next(*mode, *event), listed) {
                (Step::To(to), Some((_, _, expected))) => assert_eq!(to, *expected, "{mode:?} {event:?}"),
                (Step::To(to), None) => panic!("{mode:?} {event:?} leads to {to:?}"),
                (step, Some(_)) => panic!("{mode:?} {event:?} gives {step:?}"),
                (Step::Refuse, None) => {
                    assert!(REQUESTS.contains(event), "{mode:?}: what happens by itself cannot be refused: {event:?}");
                }
                (Step::Stay, None) => {}
            }
        }
    }
}

#[test]
fn only_start_leads_to_running_and_only_from_armed() {
    for mode in Mode::ALL {
        for event in Event::ALL {
            if next(*mode, *event) == Step::To(Mode::Running) {
                assert_eq!((*mode, *event), (Mode::Armed, Event::Start));
            }
        }
    }
}

#[test]
fn nothing_resets_a_stop_on_its_way() {
    for event in [Event::Arm, Event::Start, Event::Recover, Event::Disarm, Event::Takeover, Event::Release] {
        assert_eq!(next(Mode::Stopping, event), Step::Refuse, "{event:?}");
    }
}

#[test]
fn every_mode_but_faulted_can_always_be_left_towards_rest() {
    for mode in [Mode::Armed, Mode::Running, Mode::Takeover, Mode::Degraded] {
        for event in [Event::Stop, Event::Quit, Event::TerminalClosed] {
            assert_eq!(next(mode, event), Step::To(Mode::Stopping), "{mode:?} {event:?}");
        }
    }
}

#[test]
fn words_and_numbers_of_modes_are_unique_and_read_back() {
    let words: BTreeSet<_> = Mode::ALL.iter().map(|mode| mode.word()).collect();
    assert_eq!(words.len(), Mode::ALL.len());
    for mode in Mode::ALL {
        assert_eq!(Mode::from_u8(*mode as u8), Some(*mode));
    }
    assert_eq!(Mode::from_u8(8), None);
}

fn any_event() -> impl Strategy<Value = Option<Event>> {
    prop_oneof![
        3 => Just(None),
        1 => (0..Event::ALL.len()).prop_map(|index| Some(Event::ALL[index])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens in whatever order: Running is entered by Start from Armed only, Holding is left by a person,
    /// nothing is sent in Idle and Faulted, and something is sent in every other mode.
    #[test]
    fn no_stream_of_events_reaches_what_the_table_forbids(
        events in proptest::collection::vec((any_event(), any::<bool>(), any::<bool>()), 1..400),
        is_walker in any::<bool>(),
    ) {
        let mut rig = Rig::new(if is_walker { plans::walker(2) } else { plans::plan(2) });
        let mut mode = Mode::Idle;
        for (event, is_answering, is_sampling) in events {
            // Three quarters of the faults heal, so that streams get somewhere.
            rig.is_answering = is_answering || rig.now_ns % 3 > 0;
            rig.is_sampling = is_sampling || rig.now_ns % 5 > 0;
            rig.supervisor.set_ready(READY);
            let before = rig.supervisor.mode();
            prop_assert_eq!(before, mode);
            if let Some(event) = event {
                let answer = rig.event(event);
                let after = rig.supervisor.mode();
                if after != before {
                    prop_assert_eq!(next(before, event), Step::To(after));
                    prop_assert_eq!(answer, Ok(()));
                }
                if after == Mode::Running && before != Mode::Running {
                    prop_assert_eq!((before, event), (Mode::Armed, Event::Start));
                }
            }
            let between = rig.supervisor.mode();
            let seen = rig.tick();
            // By itself a tick only stops and finishes stopping.
            let is_allowed = seen.mode == between
                || matches!(
                    (between, seen.mode),
                    (Mode::Armed | Mode::Running | Mode::Degraded | Mode::Takeover, Mode::Stopping | Mode::Holding)
                        | (Mode::Stopping, Mode::Holding)
                        | (Mode::Holding, Mode::Stopping)
                );
            prop_assert!(is_allowed, "{:?} to {:?} by itself", between, seen.mode);
            prop_assert_eq!(seen.wire.is_none(), matches!(seen.mode, Mode::Idle | Mode::Faulted));
            mode = seen.mode;
        }
    }
}

//! The guard's answer to one command.

use crate::code::Code;

/// Every code of the guard lies below this number, so that a bit set holds them.
const CODE_BITS: u16 = 64;
/// Codes below this number keep the first joint that they concern.
const JOINT_CODES: usize = 32;
/// No joint in particular.
const NO_JOINT: u8 = u8::MAX;

/// What became of a wanted command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RulingKind {
    /// Sent as wanted.
    #[default]
    Pass = 0,
    /// Sent after being brought back to a limit.
    Limited = 1,
    /// Not sent: the safe behaviour acts instead.
    Refused = 2,
}

/// A set of codes with the first joint that each concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codes {
    bits: u64,
    first: [u8; JOINT_CODES],
}

impl Default for Codes {
    fn default() -> Self {
        Codes { bits: 0, first: [NO_JOINT; JOINT_CODES] }
    }
}

impl Codes {
    /// Adds a code; of several joints the first one added stays.
    pub fn add(&mut self, code: Code, joint: Option<usize>) {
        if code == Code::None || self.has(code) {
            return;
        }
        self.bits |= bit(code);
        let joint = joint.and_then(|joint| u8::try_from(joint).ok()).unwrap_or(NO_JOINT);
        self.first.iter_mut().skip(usize::from(code as u16)).take(1).for_each(|slot| *slot = joint);
    }

    /// Whether a code is in the set.
    pub fn has(&self, code: Code) -> bool {
        self.bits & bit(code) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// One bit per code number, for the recording.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// The first joint that a code of the set concerns, robot order.
    pub fn joint(&self, code: Code) -> Option<usize> {
        let joint = self.first.get(usize::from(code as u16)).copied().filter(|joint| *joint != NO_JOINT);
        joint.filter(|_| self.has(code)).map(usize::from)
    }

    /// The codes of the set in their order.
    pub fn iter(&self) -> impl Iterator<Item = Code> + '_ {
        let bits = self.bits;
        (0..CODE_BITS).filter(move |number| bits >> number & 1 == 1).filter_map(Code::from_u16)
    }
}

fn bit(code: Code) -> u64 {
    1_u64.checked_shl(u32::from(code as u16)).unwrap_or(0)
}

/// What the guard decided about one command, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ruling {
    /// Pass, limited or refused.
    pub kind: RulingKind,
    /// Everything that acted or was noticed.
    pub codes: Codes,
    /// The refusing code, `None` unless refused.
    pub refusal: Option<Code>,
}

impl Ruling {
    pub(super) fn limit(&mut self, code: Code, joint: usize) {
        self.codes.add(code, Some(joint));
        self.kind = self.kind.max(RulingKind::Limited);
    }

    pub(super) fn notice(&mut self, code: Code, joint: usize) {
        self.codes.add(code, Some(joint));
    }

    pub(crate) fn refuse(&mut self, code: Code, joint: Option<usize>) {
        self.codes.add(code, joint);
        self.kind = RulingKind::Refused;
        self.refusal = self.refusal.or(Some(code));
    }

    /// Whether the safe behaviour must act instead.
    pub fn is_refused(&self) -> bool {
        self.kind == RulingKind::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_joint_of_a_code_is_kept() {
        let mut codes = Codes::default();
        codes.add(Code::Velocity, Some(3));
        codes.add(Code::Velocity, Some(1));
        codes.add(Code::NotFinite, None);
        assert_eq!(codes.joint(Code::Velocity), Some(3));
        assert_eq!(codes.joint(Code::NotFinite), None);
        assert_eq!(codes.iter().collect::<Vec<_>>(), [Code::NotFinite, Code::Velocity]);
    }

    #[test]
    fn the_first_refusal_stays_the_reason() {
        let mut ruling = Ruling::default();
        ruling.refuse(Code::Position, Some(0));
        ruling.refuse(Code::Velocity, Some(0));
        ruling.limit(Code::Jerk, 0);
        assert_eq!((ruling.kind, ruling.refusal), (RulingKind::Refused, Some(Code::Position)));
    }

    #[test]
    fn every_code_below_the_bit_width_has_its_own_bit() {
        for code in Code::ALL.iter().filter(|code| **code != Code::None && (**code as u16) < CODE_BITS) {
            let mut codes = Codes::default();
            codes.add(*code, Some(0));
            assert_eq!(codes.iter().collect::<Vec<_>>(), [*code]);
        }
    }
}

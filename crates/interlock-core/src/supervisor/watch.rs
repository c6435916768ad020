//! Whether the worker answers in time.

/// The oldest offer that nobody answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Watch {
    deadline_ns: i64,
    oldest: Option<Offered>,
    newest: Option<Offered>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offered {
    seq: u64,
    at_ns: i64,
}

impl Watch {
    pub fn new(deadline_ns: i64) -> Self {
        Watch { deadline_ns, oldest: None, newest: None }
    }

    pub fn restart(&mut self) {
        self.oldest = None;
        self.newest = None;
    }

    pub fn offered(&mut self, seq: u64, at_ns: i64) {
        let offered = Offered { seq, at_ns };
        self.oldest = self.oldest.or(Some(offered));
        self.newest = Some(offered);
    }

    /// An answer to `seq` answers everything before it: a worker takes the newest observation.
    pub fn answered(&mut self, seq: u64) {
        if self.oldest.is_some_and(|oldest| oldest.seq <= seq) {
            self.oldest = self.newest.filter(|newest| newest.seq > seq);
        }
    }

    /// The supervisor itself was late: nobody else is to blame for that time.
    pub fn excuse(&mut self, span_ns: i64) {
        for offered in self.oldest.iter_mut().chain(&mut self.newest) {
            offered.at_ns = offered.at_ns.saturating_add(span_ns);
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.oldest.is_some()
    }

    pub fn is_late(&self, now_ns: i64) -> bool {
        self.oldest.is_some_and(|oldest| now_ns.saturating_sub(oldest.at_ns) > self.deadline_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unanswered_offer_counts() {
        let mut watch = Watch::new(100);
        watch.offered(1, 0);
        watch.offered(2, 60);
        assert!(!watch.is_late(100));
        assert!(watch.is_late(101));
        watch.answered(1);
        assert!(!watch.is_late(101) && watch.is_late(161));
        watch.answered(2);
        assert!(!watch.is_waiting() && !watch.is_late(1_000_000));
    }

    #[test]
    fn an_answer_to_something_older_answers_nothing_newer() {
        let mut watch = Watch::new(100);
        watch.offered(5, 0);
        watch.answered(4);
        assert!(watch.is_waiting());
    }

    #[test]
    fn the_supervisors_own_lateness_blames_nobody() {
        let mut watch = Watch::new(100);
        watch.offered(1, 0);
        watch.excuse(500);
        assert!(!watch.is_late(600));
    }
}

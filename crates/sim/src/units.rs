//! Members and their servers: start and end of service of each I/O.

use super::spec::{Positioning, ServerLayout};
use iosonde_workload::rng::{Rng, mix64};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One member of the device: servers that share one FIFO queue, and possibly a head.
#[derive(Debug)]
pub(super) struct DeviceMember {
    /// Time when each server becomes free, earliest first.
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Completion times of I/Os that may still be waiting. Kept only for a member with a head.
    pending_ns: BinaryHeap<Reverse<u64>>,
    /// Address after the last I/O.
    head: u64,
}

impl DeviceMember {
    fn new(parallel: u32) -> DeviceMember {
        let free_ns = (0..parallel).map(|_| Reverse(0)).collect();
        DeviceMember {
            free_ns,
            pending_ns: BinaryHeap::new(),
            head: 0,
        }
    }

    /// Earliest time when a server can start an I/O that arrives now.
    pub(super) fn start_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.free_ns.peek().expect("a member has servers").0)
    }

    /// Occupies the server that becomes free first until `end_ns`.
    pub(super) fn occupy(&mut self, end_ns: u64) {
        let mut first = self.free_ns.peek_mut().expect("a member has servers");
        *first = Reverse(end_ns);
    }

    /// Time in nanoseconds to move the head to `address`. The head is then after the `bytes` there.
    pub(super) fn position_ns(
        &mut self,
        rules: &Positioning,
        now_ns: u64,
        address: u64,
        bytes: u64,
        rng: &mut Rng,
    ) -> f64 {
        let distance = self.head.abs_diff(address);
        self.head = address + bytes;
        if distance == 0 {
            return 0.0;
        }
        while self.pending_ns.peek().is_some_and(|end| end.0 <= now_ns) {
            self.pending_ns.pop();
        }
        let rotation_ns = rules.rotation_ns as f64 * rng.unit();
        (rules.seek_ns(distance) + rotation_ns) * rules.gain(self.pending_ns.len() + 1)
    }

    /// Counts an I/O as waiting until `end_ns`.
    pub(super) fn await_end(&mut self, end_ns: u64) {
        self.pending_ns.push(Reverse(end_ns));
    }
}

/// The part of an I/O on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberPart {
    pub(super) member: usize,
    /// Address on that member.
    pub(super) address: u64,
    pub(super) bytes: u64,
}

pub(super) fn members(layout: &ServerLayout) -> Vec<DeviceMember> {
    (0..layout.members)
        .map(|_| DeviceMember::new(layout.parallel))
        .collect()
}

/// Cuts the range of an I/O at stripe borders. An I/O without bytes has one part.
pub(super) fn parts(
    layout: ServerLayout,
    address: u64,
    bytes: u64,
) -> impl Iterator<Item = MemberPart> {
    let mut left = Some((address, bytes));
    std::iter::from_fn(move || {
        let (address, bytes) = left.take()?;
        if layout.members == 1 {
            return Some(MemberPart {
                member: 0,
                address,
                bytes,
            });
        }
        let within = address % layout.stripe_bytes;
        let here = bytes.min(layout.stripe_bytes - within);
        if here < bytes {
            left = Some((address + here, bytes - here));
        }
        let stripe = address / layout.stripe_bytes;
        let members = u64::from(layout.members);
        let member = if layout.hashed {
            mix64(stripe) % members
        } else {
            stripe % members
        };
        let address = stripe / members * layout.stripe_bytes + within;
        Some(MemberPart {
            member: member as usize,
            address,
            bytes: here,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(members: u32, stripe_bytes: u64, hashed: bool) -> ServerLayout {
        ServerLayout {
            members,
            parallel: 1,
            stripe_bytes,
            hashed,
            replicas: 1,
        }
    }

    #[test]
    fn stripes_cycle_through_the_members() {
        let found: Vec<MemberPart> = parts(layout(3, 100, false), 250, 200).collect();
        let expected = [(2, 50, 50), (0, 100, 100), (1, 100, 50)];
        let expected = expected.map(|(member, address, bytes)| MemberPart {
            member,
            address,
            bytes,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn io_of_zero_bytes_has_one_part() {
        assert_eq!(parts(layout(4, 100, false), 700, 0).count(), 1);
    }

    #[test]
    fn next_io_starts_at_the_first_free_server() {
        let mut member = DeviceMember::new(2);
        member.occupy(50);
        assert_eq!(member.start_ns(0), 0);
        member.occupy(20);
        assert_eq!(member.start_ns(0), 20);
        member.occupy(90);
        assert_eq!(member.start_ns(0), 50);
        assert_eq!(member.start_ns(60), 60);
    }

    proptest! {
        #[test]
        fn parts_cover_the_io(
            members in 1u32..9,
            stripe in 1u64..1000,
            hashed: bool,
            address in 0u64..1_000_000,
            bytes in 0u64..20_000,
        ) {
            let layout = layout(members, stripe, hashed);
            let found: Vec<MemberPart> = parts(layout, address, bytes).collect();
            prop_assert_eq!(found.iter().map(|part| part.bytes).sum::<u64>(), bytes);
            prop_assert!(found.iter().all(|part| part.member < members as usize));
        }
    }
}

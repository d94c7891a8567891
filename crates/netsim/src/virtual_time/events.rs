//! The event queue of a simulation, timers included.

use core::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Waker;

use slab::Slab;

use crate::Time;

/// An event at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A timer's entry with this number is due. It counts only if the timer has no newer entry.
    Timer { slot: u32, entry: u64 },
    /// A packet has reached the next link of its route, or its socket.
    Packet { slot: u32 },
    /// A host's held-back datagrams become visible to their socket.
    Interrupt { socket: u32 },
}

/// An event, its position in the order of all events, and the lane of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    order: u64,
    event: Event,
    lane: Option<u32>,
}

/// Events in order of time, and in order of insertion at equal times.
///
/// A link may carry hundreds of packets, and they arrive in order unless the link reorders. So each link has its own
/// lane, and only the lane's first event is in the heap. An event that would be out of order in its lane goes to the
/// heap immediately.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    lanes: Vec<Lane>,
    order: u64,
    timers: Slab<Timer>,
}

/// Events that were inserted in the order of their times.
#[derive(Debug, Default)]
struct Lane {
    /// All but the first, which is in the heap.
    waiting: VecDeque<Entry>,
    /// Time of the last one; `None` if the lane is empty and has none in the heap.
    last: Option<Time>,
}

impl EventQueue {
    pub(super) fn push(&mut self, at: Time, event: Event) {
        let entry = self.entry(at, event);
        self.heap.push(Reverse(entry));
    }

    /// Inserts an event that is probably later than the previous ones in the same lane.
    pub(super) fn push_in_lane(&mut self, lane: usize, at: Time, event: Event) {
        let mut entry = self.entry(at, event);
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Lane::default);
        }
        if let Some(state) = self.lanes.get_mut(lane)
            && state.last.is_none_or(|last| last <= at)
        {
            entry.lane = u32::try_from(lane).ok();
            if state.last.replace(at).is_some() {
                state.waiting.push_back(entry);
                return;
            }
        }
        self.heap.push(Reverse(entry));
    }

    /// A new entry in no lane, after all earlier ones of the same time.
    fn entry(&mut self, at: Time, event: Event) -> Entry {
        self.order += 1;
        Entry {
            at,
            order: self.order,
            event,
            lane: None,
        }
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Event)> {
        let mut first = self.heap.peek_mut()?;
        let Reverse(entry) = *first;
        let lane = entry.lane.and_then(|lane| self.lanes.get_mut(lane as usize));
        match lane.map(|lane| (lane.waiting.pop_front(), lane)) {
            Some((Some(next), _)) => *first = Reverse(next),
            Some((None, lane)) => {
                lane.last = None;
                PeekMut::pop(first);
            }
            None => {
                PeekMut::pop(first);
            }
        }
        Some((entry.at, entry.event))
    }
}

/// A timer. Timers are reset far more often than they fire, so each has at most one current entry in the heap. A reset
/// to a later time leaves the entry there; when it is due before the deadline, it is inserted again.
#[derive(Debug)]
struct Timer {
    times: Arc<TimerTimes>,
    /// Number of its current entry, so that superseded ones are recognized.
    entry: u64,
    waker: Option<Waker>,
}

/// The times of a timer; its owner reads them without the queue's lock. A simulation runs on one thread at a time, so
/// the fields need no memory ordering among each other.
#[derive(Debug)]
pub(super) struct TimerTimes {
    /// Nanoseconds at which it expires.
    deadline: AtomicU64,
    /// Time of its current entry in nanoseconds; [`NO_ENTRY`] if it has none.
    entry: AtomicU64,
    /// True while it has a waker.
    is_awaited: AtomicBool,
}

/// Later than every deadline.
const NO_ENTRY: u64 = u64::MAX;

impl TimerTimes {
    fn new(deadline: Time) -> Self {
        Self {
            deadline: AtomicU64::new(Self::nanos(deadline)),
            entry: AtomicU64::new(NO_ENTRY),
            is_awaited: AtomicBool::new(false),
        }
    }

    fn nanos(deadline: Time) -> u64 {
        deadline.as_nanos().min(NO_ENTRY - 1)
    }

    /// Sets the deadline. If it returns true, call [`EventQueue::arm`].
    #[must_use]
    pub(super) fn reset(&self, deadline: Time) -> bool {
        self.deadline.store(Self::nanos(deadline), Relaxed);
        self.is_awaited.load(Relaxed) && !self.is_armed()
    }

    /// Returns true if it has expired by `now`.
    pub(super) fn has_expired(&self, now: Time) -> bool {
        self.deadline.load(Relaxed) <= now.as_nanos()
    }

    /// Returns true while it has a waker.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Relaxed)
    }

    /// Returns true if an entry is due no later than the deadline.
    pub(super) fn is_armed(&self) -> bool {
        self.entry.load(Relaxed) <= self.deadline.load(Relaxed)
    }
}

impl EventQueue {
    pub(super) fn new_timer(&mut self, deadline: Time) -> (u32, Arc<TimerTimes>) {
        let times = Arc::new(TimerTimes::new(deadline));
        let slot = self.timers.insert(Timer {
            times: Arc::clone(&times),
            entry: 0,
            waker: None,
        });
        (u32::try_from(slot).unwrap_or(u32::MAX), times)
    }

    /// Makes the timer call `waker` when it expires; returns the waker that it replaces.
    pub(super) fn await_timer(&mut self, slot: u32, waker: &Waker) -> Option<Waker> {
        let timer = self.timers.get_mut(slot as usize)?;
        let replaced = match &timer.waker {
            Some(known) if known.will_wake(waker) => None,
            _ => timer.waker.replace(waker.clone()),
        };
        timer.times.is_awaited.store(true, Relaxed);
        self.arm(slot);
        replaced
    }

    /// Removes the waker of the timer, so that it wakes no task.
    pub(super) fn forget_waker(&mut self, slot: u32) -> Option<Waker> {
        let timer = self.timers.get_mut(slot as usize)?;
        timer.times.is_awaited.store(false, Relaxed);
        timer.waker.take()
    }

    /// Ensures that an entry is due no later than the deadline.
    pub(super) fn arm(&mut self, slot: u32) {
        let Some(timer) = self.timers.get_mut(slot as usize) else {
            return;
        };
        if timer.times.is_armed() {
            return;
        }
        // No other entry has the number that the next one gets in the queue.
        let entry = self.order + 1;
        timer.entry = entry;
        let deadline = timer.times.deadline.load(Relaxed);
        timer.times.entry.store(deadline, Relaxed);
        self.push(Time::from_nanos(deadline), Event::Timer { slot, entry });
    }

    /// Handles an entry that is due at `now`; returns the waker to call.
    pub(super) fn timer_due(&mut self, slot: u32, entry: u64, now: Time) -> Option<Waker> {
        let timer = self.timers.get_mut(slot as usize)?;
        if timer.entry != entry {
            return None;
        }
        timer.times.entry.store(NO_ENTRY, Relaxed);
        if timer.times.has_expired(now) {
            return self.forget_waker(slot);
        }
        if timer.waker.is_some() {
            self.arm(slot);
        }
        None
    }

    pub(super) fn drop_timer(&mut self, slot: u32) -> Option<Waker> {
        self.timers.try_remove(slot as usize)?.waker
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Times that mostly increase, like those of packets on links, and some that do not.
        #[test]
        fn events_come_in_the_order_of_their_times_and_of_insertion_whatever_their_lane(
            steps in prop::collection::vec((0_u64..50, 0_usize..4, any::<bool>()), 1..300),
        ) {
            let (mut queue, mut expected) = (EventQueue::default(), Vec::new());
            let mut now = Time::ZERO;
            let mut popped = Vec::new();
            for (number, (ahead, lane, pops)) in (0_u32..).zip(steps) {
                let at = Time::from_nanos(now.as_nanos() + ahead);
                let event = Event::Packet { slot: number };
                match lane {
                    3 => queue.push(at, event),
                    lane => queue.push_in_lane(lane, at, event),
                }
                expected.push((at, number));
                if pops && let Some((at, event)) = queue.pop() {
                    expected.sort_unstable();
                    let (expected_at, slot) = expected.remove(0);
                    prop_assert_eq!((at, event), (expected_at, Event::Packet { slot }));
                    now = at;
                }
            }
            while let Some(next) = queue.pop() {
                popped.push(next);
            }
            expected.sort_unstable();
            let rest: Vec<_> = expected
                .into_iter()
                .map(|(at, slot)| (at, Event::Packet { slot }))
                .collect();
            prop_assert_eq!(popped, rest);
        }
    }
}

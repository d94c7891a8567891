//! The event queue of a simulation, timers included.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

use crate::Time;

/// An event at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A timer's entry comes up. It counts only if it is still the timer's own.
    Timer { slot: u32, generation: u32 },
    /// A packet has come to the next link of its route, or to its socket.
    Packet { slot: u32 },
    /// A host's held-back datagrams become visible to their socket.
    Interrupt { socket: u32 },
}

/// Events in order of time, and in order of insertion at equal times.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    order: u64,
    timers: Timers,
}

impl EventQueue {
    pub(super) fn push(&mut self, at: Time, event: Event) {
        self.heap.push(Reverse((at, self.order, event)));
        self.order += 1;
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// Timers that are reset far more often than they fire. Each has at most one entry of its own in the heap: a
/// reset to a later time leaves it there, and it is put back when it comes up too early.
#[derive(Debug, Default)]
struct Timers {
    slots: Vec<TimerSlot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct TimerSlot {
    deadline: Time,
    /// Time of its own entry.
    entry: Option<Time>,
    /// Counts the entries it has made, so that superseded ones are known by their number.
    generation: u32,
    waker: Option<Waker>,
}

impl EventQueue {
    pub(super) fn new_timer(&mut self, deadline: Time) -> u32 {
        let timers = &mut self.timers;
        if let Some(slot) = timers.free.pop()
            && let Some(timer) = timers.slots.get_mut(slot as usize)
        {
            timer.deadline = deadline;
            return slot;
        }
        let slot = u32::try_from(timers.slots.len()).unwrap_or(u32::MAX);
        timers.slots.push(TimerSlot {
            deadline,
            entry: None,
            generation: 0,
            waker: None,
        });
        slot
    }

    pub(super) fn reset_timer(&mut self, slot: u32, deadline: Time) {
        let Some(timer) = self.timers.slots.get_mut(slot as usize) else {
            return;
        };
        timer.deadline = deadline;
        if timer.waker.is_some() {
            self.arm(slot);
        }
    }

    /// Returns true if the timer has expired; otherwise `waker` is called when it does.
    pub(super) fn poll_timer(&mut self, slot: u32, now: Time, waker: &Waker) -> bool {
        let Some(timer) = self.timers.slots.get_mut(slot as usize) else {
            return true;
        };
        if timer.deadline <= now {
            timer.waker = None;
            return true;
        }
        match &mut timer.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        self.arm(slot);
        false
    }

    /// Sees to it that an entry comes up no later than the deadline.
    fn arm(&mut self, slot: u32) {
        let Some(timer) = self.timers.slots.get_mut(slot as usize) else {
            return;
        };
        if timer.entry.is_some_and(|entry| entry <= timer.deadline) {
            return;
        }
        timer.generation = timer.generation.wrapping_add(1);
        timer.entry = Some(timer.deadline);
        let (at, generation) = (timer.deadline, timer.generation);
        self.push(at, Event::Timer { slot, generation });
    }

    /// An entry has come up at `now`; returns whom to wake.
    pub(super) fn timer_due(&mut self, slot: u32, generation: u32, now: Time) -> Option<Waker> {
        let timer = self.timers.slots.get_mut(slot as usize)?;
        if timer.generation != generation {
            return None;
        }
        timer.entry = None;
        if timer.deadline <= now {
            return timer.waker.take();
        }
        if timer.waker.is_some() {
            self.arm(slot);
        }
        None
    }

    pub(super) fn drop_timer(&mut self, slot: u32) -> Option<Waker> {
        let timer = self.timers.slots.get_mut(slot as usize)?;
        timer.generation = timer.generation.wrapping_add(1);
        timer.entry = None;
        self.timers.free.push(slot);
        timer.waker.take()
    }
}

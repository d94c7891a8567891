//! Tasks, timers and the possible ends of a run.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::Poll;

use quinn::Runtime;

use super::*;

fn empty() -> (Simulation, Arc<VirtualRuntime>) {
    let sim = Simulation::new(Seed::new(1));
    let runtime = sim.runtime();
    (sim, runtime)
}

#[test]
fn timers_are_exact_to_the_nanosecond_and_take_no_real_time() {
    let (sim, runtime) = empty();
    let begun = Instant::now();
    let deadline = Duration::from_secs(1_000_000);
    let slept = Duration::from_nanos(864_000_000_000_001);
    sim.run(deadline, runtime.sleep(slept)).unwrap();
    assert_eq!(sim.now().elapsed(), slept);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn tasks_run_in_the_order_of_their_timers_and_of_spawning() {
    let (sim, runtime) = empty();
    let (sender, order) = mpsc::channel();
    for (name, wait) in [("b", 20), ("c", 20), ("a", 10)] {
        let (sender, sleep) = (sender.clone(), runtime.sleep(Duration::from_millis(wait)));
        runtime.spawn(Box::pin(async move {
            sleep.await;
            sender.send(name).unwrap();
        }));
    }
    sim.run(Simulation::DAY, runtime.sleep(Duration::from_millis(30)))
        .unwrap();
    assert_eq!(order.try_iter().collect::<String>(), "abc");
}

#[test]
fn a_timer_that_is_reset_goes_off_once_at_its_last_deadline() {
    let (sim, runtime) = empty();
    let at = |millis| runtime.shared.instant_of(Time::from_millis(millis));
    let mut timer = runtime.new_timer(at(50));
    let mut polls = 0;
    let run = poll_fn(|cx| {
        polls += 1;
        match polls {
            // Later, then earlier, then later again: only the last counts.
            1 => {
                assert!(timer.as_mut().poll(cx).is_pending());
                for millis in [80, 20, 60] {
                    timer.as_mut().reset(at(millis));
                    assert!(timer.as_mut().poll(cx).is_pending());
                }
                Poll::Pending
            }
            _ => timer.as_mut().poll(cx),
        }
    });
    sim.run(Simulation::DAY, run).unwrap();
    assert_eq!((sim.now(), polls), (Time::from_millis(60), 2));
}

#[test]
fn a_reset_to_an_earlier_time_counts_without_another_poll() {
    let (sim, runtime) = empty();
    let at = |millis| runtime.shared.instant_of(Time::from_millis(millis));
    let mut timer = runtime.new_timer(at(50));
    let mut first = true;
    let run = poll_fn(|cx| {
        let polled = timer.as_mut().poll(cx);
        if core::mem::take(&mut first) {
            timer.as_mut().reset(at(10));
        }
        polled
    });
    sim.run(Simulation::DAY, run).unwrap();
    assert_eq!(sim.now(), Time::from_millis(10));
}

#[test]
fn waiting_for_nothing_is_a_deadlock() {
    let (sim, runtime) = empty();
    runtime.spawn(Box::pin(pending()));
    let sleep = runtime.sleep(Duration::from_millis(5));
    let ended = sim.run(Simulation::DAY, async {
        sleep.await;
        pending::<()>().await;
    });
    let expected = "deadlock at 5ms: 1 tasks wait, and no timer or packet is left to wake them";
    assert_eq!(ended.unwrap_err().to_string(), expected);
}

#[test]
fn a_task_that_wakes_itself_for_ever_is_found_spinning() {
    let (sim, _) = empty();
    let spin = poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let ended = sim.run(Simulation::DAY, spin);
    let expected = "tasks spin at 0s: 1000000 polls without time passing";
    assert_eq!(ended.unwrap_err().to_string(), expected);
}

#[test]
fn the_deadline_ends_a_run_on_time_and_the_next_run_goes_on() {
    let (sim, runtime) = empty();
    let ticks = Arc::new(AtomicU32::new(0));
    let (clock, count) = (Arc::clone(&runtime), Arc::clone(&ticks));
    runtime.spawn(Box::pin(async move {
        loop {
            clock.sleep(Duration::from_millis(10)).await;
            count.fetch_add(1, Ordering::Relaxed);
        }
    }));
    for (deadline, ticked) in [(35, 3), (55, 5)] {
        let at = Time::from_millis(deadline);
        let ended = sim.run(at.elapsed(), pending::<()>());
        assert_eq!(ended, Err(RunError::Deadline { at }));
        assert_eq!((sim.now(), ticks.load(Ordering::Relaxed)), (at, ticked));
    }
}

#[test]
fn dropping_a_simulation_drops_its_tasks() {
    let (sim, runtime) = empty();
    let alive = Arc::new(());
    let (held, own) = (Arc::clone(&alive), Arc::clone(&runtime));
    runtime.spawn(Box::pin(async move {
        own.sleep(Duration::from_secs(1_000)).await;
        drop(held);
    }));
    sim.run(Simulation::DAY, runtime.sleep(Duration::from_millis(1)))
        .unwrap();
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(sim);
    assert_eq!(Arc::strong_count(&alive), 1);
}

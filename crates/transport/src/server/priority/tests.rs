use super::*;
use playrate_netsim::{Seed, Simulation};
use rstest::rstest;

/// RFC 9218 §4: unknown members and values out of range count as absent; a malformed field is none.
#[rstest]
#[case("u=5, i", Some((5, true)))]
#[case("u=0", Some((0, false)))]
#[case("i", Some((3, true)))]
#[case("i=?0,u=7", Some((7, false)))]
#[case("", Some((3, false)))]
#[case("u=8", Some((3, false)))]
#[case("u=-1, i=1", Some((3, false)))]
#[case("u=(1 2), i=?1;x", Some((3, true)))]
#[case("u=1.0, later=\"x\"", Some((3, false)))]
#[case("u=1, u=2", Some((2, false)))]
#[case("U=1", None)]
#[case("u=", None)]
fn a_priority_is_read_as_its_rfc_says(#[case] text: &str, #[case] expected: Option<(u8, bool)>) {
    let read = Priority::parse(text.as_bytes()).map(|read| (read.urgency, read.incremental));
    assert_eq!(read, expected);
}

#[test]
fn a_field_of_several_lines_is_one_priority() {
    let mut headers = HeaderMap::new();
    assert_eq!(Priority::of_request(&headers), None);
    for line in ["u=1", "i"] {
        headers.append(PRIORITY, HeaderValue::from_static(line));
    }
    assert_eq!(Priority::of_request(&headers), Some(priority("u=1, i")));
}

fn priority(text: &str) -> Priority {
    Priority::parse(text.as_bytes()).unwrap()
}

#[test]
fn streams_are_ordered_as_their_responses_and_after_those_of_http3() {
    let [urgent, usual, shared, late] = ["u=0", "u=3", "u=3, i", "u=7, i"].map(priority);
    let order = [
        urgent.of_stream(0),
        urgent.of_stream(9),
        usual.of_stream(1),
        usual.of_stream(2),
        usual.of_stream(u64::MAX),
        shared.of_stream(3),
        late.of_stream(0),
    ];
    assert!(order.is_sorted_by(|one, next| one > next), "{order:?}");
    assert!(order.iter().all(|&priority| priority < 0));
    assert_eq!(shared.of_stream(3), shared.of_stream(u64::MAX));
    assert_eq!(Priority::default(), shared);
}

/// The responses that may write now, by number; asking counts as writing.
fn writers(turns: &mut [Turn]) -> Vec<u64> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let may = turns
        .iter_mut()
        .filter_map(|turn| turn.poll(&mut cx).is_ready().then_some(turn.number));
    may.collect()
}

/// Responses on a connection in virtual time.
fn in_virtual_time(test: impl AsyncFnOnce(Arc<dyn Runtime>, Arc<Turns>)) {
    let simulation = Simulation::new(Seed::new(1));
    let runtime: Arc<dyn Runtime> = simulation.runtime();
    let turns = Turns::new(Arc::clone(&runtime));
    simulation
        .run(Duration::from_secs(60), test(runtime, turns))
        .unwrap();
}

#[rstest]
#[case::the_urgent_first(&["u=5", "u=1"], &[1])]
#[case::in_order_of_requests(&["u=3", "u=3", "u=3"], &[0])]
#[case::incremental_ones_share(&["u=3, i", "u=3, i"], &[0, 1])]
#[case::after_those_that_are_not(&["u=3, i", "u=3", "u=4"], &[1])]
#[case::without_a_priority(&["", ""], &[0, 1])]
fn a_response_waits_for_those_that_precede_it(#[case] stated: &[&str], #[case] first: &[u64]) {
    in_virtual_time(async |_, all| {
        let stated = stated
            .iter()
            .map(|text| (!text.is_empty()).then(|| priority(text)));
        let mut turns: Vec<Turn> = (0..)
            .zip(stated)
            .map(|(number, stated)| all.begin(number, stated))
            .collect();
        assert_eq!(writers(&mut turns), first);
        turns.retain(|turn| !first.contains(&turn.number));
        assert!(
            turns.is_empty() || !writers(&mut turns).is_empty(),
            "the others wait no longer"
        );
    });
}

#[test]
fn an_update_replaces_the_header_before_and_after_the_request() {
    in_virtual_time(async |_, all| {
        all.update(1, priority("u=0"));
        let mut turns = [
            all.begin(0, Some(priority("u=1"))),
            all.begin(1, Some(priority("u=7"))),
        ];
        assert_eq!(writers(&mut turns), [1]);
        all.update(1, priority("u=2"));
        assert_eq!(writers(&mut turns), [0]);
        for number in 2..1_000 {
            all.update(number, priority("u=0"));
        }
        assert_eq!(all.state.lock().early.len(), MAX_EARLY);
    });
}

#[rstest]
#[case::ends(Some(300), 300)]
#[case::pauses_for_a_second(None, 1_000)]
fn a_response_goes_on_once_the_urgent_one(#[case] ends_after_ms: Option<u64>, #[case] expected_ms: u128) {
    in_virtual_time(async |runtime, all| {
        let urgent = all.begin(0, Some(priority("u=0")));
        let mut last = all.begin(1, Some(priority("u=7")));
        let began = runtime.now();
        let ending = async {
            let Some(millis) = ends_after_ms else {
                return Some(urgent);
            };
            time::sleep(&*runtime, Duration::from_millis(millis)).await;
            drop(urgent);
            None
        };
        tokio::join!(ending, std::future::poll_fn(|cx| last.poll(cx)));
        assert_eq!((runtime.now() - began).as_millis(), expected_ms);
    });
}

/// However long the first one writes, the others keep their order.
#[test]
fn the_next_in_line_goes_first_after_a_long_response() {
    in_virtual_time(async |runtime, all| {
        let mut turns = vec![
            all.begin(0, Some(priority("u=2"))),
            all.begin(1, Some(priority("u=1"))),
            all.begin(2, Some(priority("u=0"))),
        ];
        for _ in 0..50 {
            assert_eq!(writers(&mut turns), [2]);
            time::sleep(&*runtime, Duration::from_millis(100)).await;
        }
        turns.truncate(2);
        assert_eq!(writers(&mut turns), [1], "the last one was asked first");
        turns.truncate(1);
        assert_eq!(writers(&mut turns), [0]);
    });
}

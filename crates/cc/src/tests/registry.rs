//! Registering controllers from outside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rstest::rstest;

use super::{error_of, has, spec};
use crate::component::Traits;
use crate::parameter::Arguments;
use crate::registry::{Entry, Key, Parameter, RegisterError, Registry};
use crate::state::of_all_algorithms;
use crate::{Bytes, Path};

fn reno_of_my_own(name: &'static str) -> Entry {
    Entry::custom(name, |path, _, known| spec("reno").build(path, known))
        .about("NewReno under another name")
        .defined_in("RFC 9002 §7")
}

/// The entries that components complete.
fn algorithms(registry: &Registry) -> impl Iterator<Item = &Entry> {
    registry.controllers().filter(|entry| entry.takes_components())
}

#[test]
fn a_registered_controller_is_built_with_its_arguments() {
    let mut registry = Registry::builtin();
    let size = Parameter::size("mtu", Bytes::new(1_200), Bytes::ZERO..=Bytes::new(9_000)).about("packets");
    let entry = Entry::custom("packets", |_, arguments, known| {
        spec("reno").build(&Path::new(arguments.size("mtu")), known)
    });
    registry
        .register(entry.with_parameters(&[size]))
        .expect("a free name");
    let window = |text: &str| {
        let spec = registry.parse(text).expect("a valid spec");
        spec.build(&Path::default(), Arc::default()).window()
    };
    assert_eq!(window("packets"), Bytes::new(12_000));
    assert_eq!(window("packets(9000)"), Bytes::new(18_000));
}

#[rstest]
#[case::unknown_size(|arguments: &Arguments| _ = arguments.size("windows"), "no size `windows`")]
#[case::unknown_time(|arguments: &Arguments| _ = arguments.time("rtt"), "no time `rtt`")]
#[case::unknown_word(|arguments: &Arguments| _ = arguments.word("mode"), "no word `mode`")]
#[case::unknown_switch(|arguments: &Arguments| _ = arguments.is_on("fast"), "no word `fast`")]
#[case::number_that_is_a_size(|arguments: &Arguments| _ = arguments.number("window"), "no number `window`")]
#[case::size_that_is_a_number(|arguments: &Arguments| _ = arguments.size("gain"), "no size `gain`")]
fn a_controller_that_reads_an_undeclared_parameter_is_not_built(
    #[case] read: fn(&Arguments),
    #[case] expected: &str,
) {
    let window = Parameter::size("window", Bytes::new(12_000), Bytes::ZERO..=Bytes::new(90_000));
    let entry = Entry::custom("mine", move |path, arguments, known| {
        read(arguments);
        spec("reno").build(path, known)
    });
    let gain = Parameter::number("gain", 1.0, 0.0..=2.0);
    let mut registry = Registry::builtin();
    registry
        .register(entry.with_parameters(&[window.about("bytes"), gain.about("a factor")]))
        .expect("a free name");
    let mine = registry.parse("mine").expect("a valid spec");
    let build = AssertUnwindSafe(|| mine.build(&Path::default(), Arc::default()).window());
    let built = catch_unwind(build);
    let reason = built.expect_err("a panic");
    let reason = reason.downcast_ref::<String>().expect("a text");
    assert_eq!(
        *reason,
        format!("the entry declares {expected}; its parameters: window, gain")
    );
}

#[test]
fn a_registered_controller_takes_no_components() {
    let mut registry = Registry::builtin();
    registry.register(reno_of_my_own("mine")).expect("a free name");
    let expected = "`mine` is a whole controller: leave out `+start=hystartpp`";
    assert_eq!(error_of(registry.parse("mine+start=hystartpp")), expected);
}

#[test]
fn names_that_a_caller_resolves_itself_are_offered_too() {
    let error = |text: &str| {
        let spec = Registry::builtin().parse(text);
        error_of(spec.map_err(|error| error.with_controllers(&["quinn-newreno", "quinn-cubic"])))
    };
    has(&error("quinn-cubik"), "did you mean `quinn-cubic`?");
    assert!(error("ledbat").ends_with("reno-new-cwv-p21, quinn-newreno, quinn-cubic"));
    assert!(!error("cubic+start=fast").contains("quinn"));
}

#[test]
fn names_are_unique_and_fit_the_grammar() {
    let mut registry = Registry::builtin();
    let taken = Err(RegisterError::NameTaken("reno"));
    assert_eq!(registry.register(reno_of_my_own("reno")), taken);
    for bad in ["", "Reno", "a+b", "1st", "a b", "a(", "a,b"] {
        let error = registry.register(reno_of_my_own(bad));
        assert_eq!(error, Err(RegisterError::BadName(bad)));
    }
    assert_eq!(
        registry.register(reno_of_my_own("ccp-lb")),
        Err(RegisterError::NameTaken("ccp-lb"))
    );
    assert!(Key::ALL.is_sorted(), "specs print components in this order");
}

#[test]
fn parameters_have_names_of_their_own_and_defaults_in_range() {
    let mut registry = Registry::builtin();
    let number = |name, default| Parameter::number(name, default, 0.0..=1.0);
    for parameters in [&[number("a", 2.0)][..], &[number("a", 0.0), number("a", 1.0)]] {
        let error = registry.register(reno_of_my_own("mine").with_parameters(parameters));
        assert!(matches!(error, Err(RegisterError::BadParameter { .. })));
    }
}

// The decision depends on an algorithm's traits, not on its name.
#[rstest]
#[case("reno", "loss=guard", "answers losses itself")]
#[case("cubic", "loss=ignore", "answers losses itself")]
#[case("vegas", "shape=playout-buffer", "queue")]
#[case("compound", "shape=playout-buffer", "queue")]
#[case("stream", "shape=playout-buffer", "queue")]
#[case("stream", "shape=rate-floor", "gives way")]
#[case("cubic", "shape=playout-buffer", "answer losses")]
#[case("ccp", "loss=standard", "use guard")]
fn components_that_cannot_work_are_refused_with_the_reason_whatever_the_algorithm_is_called(
    #[case] algorithm: &str,
    #[case] component: &str,
    #[case] says: &str,
) {
    let mut registry = Registry::builtin();
    let renamed = registry.find(None, algorithm).expect("it is there");
    let mut renamed = Entry::clone(renamed);
    renamed.name = "renamed";
    registry.register(renamed).expect("a free name");
    let refusal = |name: &str| error_of(registry.parse(&format!("{name}+{component}")));
    has(&refusal(algorithm), says);
    assert_eq!(
        refusal("renamed"),
        refusal(algorithm).replace(algorithm, "renamed")
    );
}

#[test]
fn a_component_may_refuse_algorithms_with_a_reason() {
    let mut registry = Registry::builtin();
    let picky = Entry::component(Key::Start, "picky", |_, _| {}).refuses(|algorithm: Traits| {
        (!algorithm.delay_based).then_some("picky only starts algorithms that look at the RTT")
    });
    registry.register(picky).expect("a free name");
    assert!(registry.parse("vegas+start=picky").is_ok());
    let expected = "`reno+start=picky` is refused: picky only starts algorithms that look at the RTT";
    assert_eq!(error_of(registry.parse("reno+start=picky")), expected);
}

#[test]
fn ccp_is_guarded_by_default() {
    let of = |text: &str| {
        let spec = spec(text);
        spec.component(Key::Loss).map(|component| component.0.name())
    };
    assert_eq!(of("ccp"), Some("guard"));
    assert_eq!(of("ccpd+loss=ignore"), Some("ignore"));
}

#[test]
fn every_window_based_algorithm_has_a_choice_of_growth() {
    for entry in algorithms(&Registry::builtin()) {
        let has = entry.parameters().iter().any(|own| own.name == "growth");
        assert_eq!(has, !entry.is_absolute(), "{}", entry.name());
    }
}

#[test]
fn every_algorithm_ends_with_the_parameters_that_all_share() {
    for entry in algorithms(&Registry::builtin()) {
        let names: Vec<_> = entry.parameters().iter().map(|own| own.name).collect();
        let shared: Vec<_> = of_all_algorithms().iter().map(|own| own.name).collect();
        assert!(names.ends_with(&shared), "{}: {names:?}", entry.name());
    }
}

#[test]
fn the_registry_lists_algorithms_and_components() {
    let registry = Registry::builtin();
    assert!(algorithms(&registry).any(|entry| entry.name() == "cubic"));
    for key in Key::ALL {
        assert!(registry.components(key).count() > 0, "{key}");
        for algorithm in algorithms(&registry) {
            let default = algorithm.default_component(key);
            let mut names = registry.components(key).map(Entry::name);
            assert!(names.any(|name| name == default), "{key}={default}");
        }
    }
}

//! Specs in their text form.

use super::{error_of, has, spec};
use crate::SpecError;
use crate::registry::{Domain, Key, Parameter, Registry, Value, split_list};
use playrate_units::{Bytes, Duration};
use proptest::prelude::*;
use proptest::strategy::Union;
use rstest::rstest;

#[rstest]
#[case("reno", "reno")]
#[case(" reno ", "reno")]
#[case("reno()", "reno")]
#[case("reno+start=standard", "reno")]
#[case("cubic+start=hystartpp", "cubic+start=hystartpp")]
#[case("cubic + start = hystartpp", "cubic+start=hystartpp")]
#[case("cubic+idle=keep+start=hystartpp", "cubic+start=hystartpp")]
#[case("cubic(on)", "cubic")]
#[case("cubic(off)", "cubic(fast_convergence=off)")]
#[case("cubic(growth=ratelimited)", "cubic(growth=ratelimited)")]
#[case(
    "cubic(on,credit,3,0,acks,64000)",
    "cubic(initial_window=3,max_ssthresh=0,counting=acks,ssthresh=64kB)"
)]
#[case("reno(initial_window=0,ssthresh=0)", "reno")]
#[case("cubic+start=hystart(both)", "cubic+start=hystart")]
#[case("ccp(1,rtt-max,2,off,20,0s,any,0,1536,bytes,0)", "ccp")]
#[case("reno-cwv", "reno+idle=cwv")]
#[case("reno-new-cwv(10s)", "reno+idle=new-cwv(nvp=10s)")]
#[case("reno-new-cwv-p21", "reno+idle=new-cwv-restart")]
#[case("cubic+ceiling=pace(3,1.5)", "cubic+ceiling=pace")]
#[case("cubic( fast_convergence = off )", "cubic(fast_convergence=off)")]
fn the_text_form_is_canonical(#[case] given: &str, #[case] canonical: &str) {
    assert_eq!(spec(given).to_string(), canonical);
    assert_eq!(spec(canonical), spec(given));
}

#[rstest]
#[case("", "expected the name of a controller at the beginning")]
#[case("reno+", "expected a component after every `+`")]
#[case("ledbat", "unknown controller `ledbat`; expected one of: reno, cubic")]
#[case("cubik", "did you mean `cubic`")]
#[case("reno+hystartpp", "write `start=hystartpp`")]
#[case("reno+nonsense", "KEY one of start, shape, idle, loss, ceiling")]
#[case("reno+strat=standard", "did you mean `start`")]
#[case("reno+start=hystart++", "expected a component after every `+`")]
#[case("reno+start=hystrtpp", "did you mean `hystartpp`")]
#[case("reno+start=fast", "expected one of: standard, hystartpp")]
#[case("reno+start=standard+start=hystartpp", "`start=` is given twice")]
#[case("reno(1)", "invalid value `growth=1`: write credit or ratelimited")]
#[case("reno+idle=keep(1)", "leave out `1`; it takes none")]
#[case("cubic(fast=off)", "did you mean `fast_convergence`")]
#[case(
    "cubic(speed=1)",
    "unknown parameter `speed` of `cubic`; it takes fast_convergence"
)]
#[case("cubic(maybe)", "invalid value `fast_convergence=maybe`: write on or off")]
#[case(
    "cubic(on,credit,0,0,off)",
    "invalid value `counting=off`: write bytes or acks"
)]
#[case("cubic(ssthresh=-1)", "a size from 0B to 4GB")]
#[case(
    "cubic(on,credit,3,0,acks,64kB,tcp,off)",
    "too many arguments for `cubic`: leave out `off`"
)]
#[case(
    "cubic(fast_convergence=on,fast_convergence=off)",
    "`fast_convergence` is given twice"
)]
#[case("cubic(fast_convergence=on,off)", "`off` follows a named argument")]
#[case("cubic(", "matching parentheses")]
#[case("cubic)", "matching parentheses")]
#[case("cubic(on)x", "matching parentheses")]
#[case("cubic((on))", "matching parentheses")]
fn a_bad_spec_says_which_part_is_wrong_and_what_is_allowed(#[case] text: &str, #[case] message: &str) {
    has(&error_of(text.parse()), message);
}

const PARAMETERS: &[Parameter] = &[
    Parameter::number("kp", 1.0, 0.0..=100.0).about("gain"),
    Parameter::time(
        "kd",
        Duration::from_millis(2),
        Duration::ZERO..=Duration::from_secs(1),
    )
    .about("derivative time"),
    Parameter::size("buffer", Bytes::from_kb(656), Bytes::ZERO..=Bytes::from_mib(64)).about("buffer"),
    Parameter::word("mode", "a", &["a", "b"]).about("mode"),
];

/// The built-in registry and an algorithm with one parameter of each kind.
fn registry() -> Registry {
    let mut registry = Registry::builtin();
    let entry = crate::registry::Entry::custom("many", |path, _, known| spec("reno").build(path, known))
        .with_parameters(PARAMETERS);
    registry.register(entry).expect("a free name");
    registry
}

#[rstest]
#[case("many(1,2000)", "many")]
#[case("many(kd=2000)", "many")]
#[case("many(kd=2000us)", "many")]
#[case("many(kd=2)", "many(kd=2us)")]
#[case("many(2,4000)", "many(kp=2,kd=4ms)")]
#[case("many(kd=4ms,kp=0.5)", "many(kp=0.5,kd=4ms)")]
#[case("many(buffer=672000)", "many(buffer=672kB)")]
#[case("many(mode=b,buffer=1MiB)", "many(buffer=1048.576kB,mode=b)")]
#[case("many(kp=-0)", "many(kp=0)")]
fn arguments_are_named_or_in_order_and_bare_numbers_take_the_parameters_unit(
    #[case] given: &str,
    #[case] canonical: &str,
) {
    let spec = registry().parse(given).expect("a valid spec");
    assert_eq!(spec.to_string(), canonical);
    assert_eq!(registry().parse(canonical).as_ref(), Ok(&spec));
}

#[rstest]
#[case("many(101)", "a number from 0 to 100")]
#[case("many(NaN)", "a number from 0 to 100")]
#[case("many(inf)", "a number from 0 to 100")]
#[case("many(kd=2s)", "a time from 0s to 1s")]
#[case("many(kd=)", "a time from 0s to 1s")]
#[case("many(buffer=1GB)", "a size from 0B")]
#[case("many(mode=c)", "a or b")]
fn a_value_out_of_range_is_refused_with_the_range(#[case] text: &str, #[case] expected: &str) {
    let refused = registry().parse(text);
    assert!(matches!(refused, Err(SpecError::Malformed { .. })));
    has(&error_of(refused), expected);
}

#[rstest]
#[case("cubic", "fast_convergence", "off", "cubic(fast_convergence=off)")]
#[case("cubic(off)+idle=cwv", "fast_convergence", "on", "cubic+idle=cwv")]
#[case("reno-cwv", "forget_ssthresh", "on", "reno+idle=cwv(forget_ssthresh=on)")]
#[case(
    "ccp-lb(2,3)+loss=ignore",
    "floor",
    "1",
    "ccp(kp=3,floor=1)+shape=playout-buffer(pob_rate=2)+loss=ignore"
)]
fn an_argument_is_replaced_where_it_is_declared(
    #[case] given: &str,
    #[case] name: &str,
    #[case] value: &str,
    #[case] expected: &str,
) {
    let changed = spec(given).with_argument(name, value).expect("a valid argument");
    assert_eq!(changed.to_string(), expected);
    assert_eq!(changed, spec(expected));
}

#[rstest]
#[case("cubic", "fast", "off", "it takes fast_convergence")]
#[case("cubic", "fast_convergence", "never", "on or off")]
#[case("ccp", "floor", "0", "a number from 1 to 100")]
fn an_argument_that_does_not_fit_is_refused(
    #[case] given: &str,
    #[case] name: &str,
    #[case] value: &str,
    #[case] expected: &str,
) {
    has(&error_of(spec(given).with_argument(name, value)), expected);
}

#[test]
fn a_list_splits_at_commas_outside_parentheses() {
    let registry = registry();
    let specs = split_list("reno, many(1,2000us) ,cubic+start=hystartpp");
    let shown: Vec<String> = specs
        .map(|text| registry.parse(text).expect("a valid spec").to_string())
        .collect();
    assert_eq!(shown, ["reno", "many", "cubic+start=hystartpp"]);
    let empty = split_list("reno,,cubic").map(|text| registry.parse(text));
    assert!(matches!(
        empty.collect::<Result<Vec<_>, _>>(),
        Err(SpecError::Malformed { .. })
    ));
}

#[test]
fn an_alias_expands_and_may_be_extended() {
    let shown = |text: &str| Registry::builtin().parse(text).map(|spec| spec.to_string());
    assert_eq!(shown("reno-cwv"), Ok("reno+idle=cwv".into()));
    assert_eq!(shown("reno-cwv+start=standard"), Ok("reno+idle=cwv".into()));
    assert_eq!(
        shown("ccp-lb+ceiling=pace"),
        Ok("ccp+shape=playout-buffer+ceiling=pace".into())
    );
    // Arguments go to the alias's components, then to its algorithm.
    assert_eq!(
        shown("ccp-lb(2,3)"),
        Ok("ccp(kp=3)+shape=playout-buffer(pob_rate=2)".into())
    );
    let twice = shown("ccp-lb+shape=none").expect_err("the alias sets the shaper");
    assert_eq!(
        twice.to_string(),
        "`shape=` is given twice (`ccp-lb` sets it already)"
    );
    let near = shown("ccp-lbb").expect_err("no such name").to_string();
    assert!(near.contains("did you mean `ccp-lb`"), "{near}");
}

#[test]
fn a_spec_tells_its_components() {
    let spec = spec("cubic+start=hystartpp");
    assert_eq!(spec.algorithm().name(), "cubic");
    let names = Key::ALL.map(|key| spec.component(key).map(|(component, _)| component.name()));
    assert_eq!(names, ["hystartpp", "none", "keep", "standard", "none"].map(Some));
}

/// An argument in the parameter's range, as text.
fn argument(parameter: Parameter) -> BoxedStrategy<String> {
    let name = parameter.name;
    let shown = move |value: Value| format!("{name}={value}");
    match parameter.domain {
        Domain::Range(Value::Number(min), Value::Number(max)) => {
            (min..=max).prop_map(move |x| shown(Value::Number(x))).boxed()
        }
        Domain::Range(Value::Time(min), Value::Time(max)) => (min.as_micros()..=max.as_micros())
            .prop_map(move |us| shown(Value::Time(Duration::from_micros(us.try_into().unwrap()))))
            .boxed(),
        Domain::Range(Value::Size(min), Value::Size(max)) => (min.as_u64()..=max.as_u64())
            .prop_map(move |bytes| shown(Value::Size(Bytes::new(bytes))))
            .boxed(),
        Domain::Range(..) => unreachable!("both ends are of one kind"),
        Domain::Words(words) => prop::sample::select(words)
            .prop_map(move |word| shown(Value::Word(word)))
            .boxed(),
    }
}

/// An entry's name with some of its arguments.
fn term(name: &'static str, parameters: &[Parameter]) -> BoxedStrategy<String> {
    let arguments: Vec<_> = parameters
        .iter()
        .map(|&parameter| prop::option::of(argument(parameter)))
        .collect();
    arguments
        .prop_map(move |arguments| {
            let given: Vec<String> = arguments.into_iter().flatten().collect();
            format!("{name}({})", given.join(","))
        })
        .boxed()
}

/// Specs that [`registry`] has, in every composition; some of them may be refused.
pub(crate) fn any_spec() -> BoxedStrategy<String> {
    let registry = registry();
    let algorithms = registry.controllers().filter(|entry| entry.name() != "many");
    let algorithms = algorithms.map(|algorithm| term(algorithm.name(), algorithm.parameters()));
    let components = Key::ALL.map(|key| {
        let components = registry.components(key);
        let components = components.map(|component| term(component.name(), component.parameters()));
        prop::option::of(Union::new(components).prop_map(move |component| format!("+{key}={component}")))
    });
    (Union::new(algorithms), components.to_vec())
        .prop_map(|(algorithm, components)| algorithm + &components.into_iter().flatten().collect::<String>())
        .boxed()
}

proptest! {
    #[test]
    fn reading_what_was_printed_gives_the_same_spec(
        text in prop_oneof![any_spec(), term("many", PARAMETERS)],
    ) {
        let registry = registry();
        match registry.parse(&text) {
            Ok(spec) => {
                let shown = spec.to_string();
                prop_assert_eq!(registry.parse(&shown).map(|again| again.to_string()), Ok(shown.clone()));
                prop_assert_eq!(registry.parse(&shown), Ok(spec));
            }
            Err(error) => {
                let refuses = matches!(error, SpecError::Refused { .. } | SpecError::TakesNoComponents { .. });
                prop_assert!(refuses, "{}", error);
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9+=(), .]{0,40}") {
        if let Ok(spec) = registry().parse(&text) {
            prop_assert_eq!(registry().parse(&spec.to_string()), Ok(spec));
        }
    }
}

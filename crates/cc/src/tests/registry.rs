//! Registering controllers from outside.

use std::sync::Arc;

use super::spec;
use crate::registry::{Alias, Entry, Key, Kind, Parameter, RegisterError, Registry};
use crate::{Bytes, Choice, Path, SpecError, VideoKnowledge};

fn reno_of_my_own(name: &'static str) -> Entry {
    Entry::custom(name, |path, _, known| spec("reno").build(path, known))
        .about("NewReno under another name", "RFC 9002 §7")
}

#[test]
fn a_registered_controller_is_built_with_its_arguments() {
    let mut registry = Registry::builtin();
    let entry = Entry::custom("packets", |_, arguments, known| {
        let mtu = if arguments.number("jumbo") > 0.0 {
            9_000
        } else {
            1_200
        };
        spec("reno").build(&Path::new(Bytes::new(mtu)), known)
    })
    .with_parameters(&[Parameter::number(
        "jumbo",
        0.0,
        0.0,
        1.0,
        "whether packets are large",
    )]);
    registry.register(entry).expect("a free name");
    let window = |text: &str| {
        let spec = registry.parse(text).expect("a valid spec");
        spec.build(&Path::default(), Arc::new(VideoKnowledge::new()))
            .window()
    };
    assert_eq!(window("packets"), Bytes::new(12_000));
    assert_eq!(window("packets(1)"), Bytes::new(18_000));
}

#[test]
fn a_registered_controller_takes_no_parts() {
    let mut registry = Registry::builtin();
    registry.register(reno_of_my_own("mine")).expect("a free name");
    let error = registry
        .parse("mine+start=hystartpp")
        .expect_err("must not parse");
    assert_eq!(
        error.to_string(),
        "`mine` is a whole controller and takes no parts; leave out `+start=hystartpp`"
    );
}

#[test]
fn an_external_controller_resolves_to_its_name_and_takes_nothing() {
    let mut registry = Registry::builtin();
    let entry = Entry::external("quinn-cubic").about("quinn's own", "quinn 0.11");
    registry.register(entry).expect("a free name");
    assert_eq!(
        registry.resolve("quinn-cubic"),
        Ok(Choice::External("quinn-cubic"))
    );
    assert_eq!(
        registry.resolve("quinn-cubic").map(|c| c.to_string()),
        Ok("quinn-cubic".into())
    );
    assert_eq!(registry.resolve("cubic"), Ok(Choice::Spec(spec("cubic"))));
    assert!(matches!(
        registry.parse("quinn-cubic"),
        Err(SpecError::External { .. })
    ));
    assert!(matches!(
        registry.resolve("quinn-cubic+idle=keep"),
        Err(SpecError::TakesNoParts { .. })
    ));
    assert!(matches!(
        registry.resolve("quinn-cubic(1)"),
        Err(SpecError::TooManyArguments { .. })
    ));
    assert!(
        "quinn-cubic".parse::<crate::ControllerSpec>().is_err(),
        "not built in"
    );
}

#[test]
fn names_are_unique_and_fit_the_grammar() {
    let mut registry = Registry::builtin();
    assert_eq!(
        registry.register(reno_of_my_own("reno")),
        Err(RegisterError::NameTaken("reno"))
    );
    for bad in ["", "Reno", "a+b", "1st", "a b", "a(", "a,b"] {
        assert_eq!(
            registry.register(reno_of_my_own(bad)),
            Err(RegisterError::BadName(bad))
        );
    }
    let alias = |name, expansion| Alias {
        name,
        expansion,
        summary: "",
        source: "",
    };
    assert_eq!(
        registry.register_alias(alias("reno", "cubic")),
        Err(RegisterError::NameTaken("reno"))
    );
    assert!(matches!(
        registry.register_alias(alias("x", "nonsense")),
        Err(RegisterError::BadExpansion { .. })
    ));
}

#[test]
fn parameters_have_names_of_their_own_and_defaults_in_range() {
    let mut registry = Registry::builtin();
    let number = |name, default| Parameter::number(name, default, 0.0, 1.0, "");
    for parameters in [&[number("a", 2.0)][..], &[number("a", 0.0), number("a", 1.0)]] {
        let entry = reno_of_my_own("mine").with_parameters(parameters);
        assert!(matches!(
            registry.register(entry),
            Err(RegisterError::BadParameter { .. })
        ));
    }
}

#[test]
fn combinations_that_make_no_sense_are_refused_with_the_reason() {
    let mut registry = Registry::builtin();
    let picky = Entry::part(Key::Start, "picky")
        .fits(|spec| {
            if spec.law().name() == "cubic" {
                Ok(())
            } else {
                Err("picky only starts cubic")
            }
        })
        .startup(|_| crate::startup::Startup::Standard(crate::startup::standard::Standard));
    registry.register(picky).expect("a free name");
    assert!(registry.parse("cubic+start=picky").is_ok());
    let error = registry.parse("reno+start=picky").expect_err("must be refused");
    assert_eq!(
        error.to_string(),
        "`reno+start=picky` makes no sense: picky only starts cubic"
    );
}

#[test]
fn the_registry_lists_laws_and_parts() {
    let registry = Registry::builtin();
    assert!(registry.controllers().any(|entry| entry.name() == "cubic"));
    assert!(registry.controllers().all(|entry| entry.kind() == Kind::Law));
    for key in Key::ALL {
        assert!(registry.parts(key).count() > 0, "{key}");
        for law in registry.controllers() {
            let default = law.default_part(key);
            assert!(
                registry.parts(key).any(|part| part.name() == default),
                "{}: {key}={default}",
                law.name()
            );
        }
    }
}

//! Controllers are chosen by their names.

use playrate_cc::Registry;
use playrate_cc::registry::Entry;

use super::{Choice, QuicStack, TestStack};

#[test]
fn every_controller_of_the_registry_can_be_chosen_by_its_name() {
    let registry = Registry::builtin();
    let ours = registry.controllers().map(Entry::name);
    let names: Vec<_> = ours.chain(TestStack::BASELINES.iter().copied()).collect();
    for name in ["reno", "cubic", "bbr", "stack-own", "stack-other"] {
        assert!(names.contains(&name), "{name} is missing from {names:?}");
    }
    for name in names {
        let choice: Choice = name.parse().unwrap();
        assert_eq!(choice.to_string(), name);
        assert_eq!(choice.to_string().parse(), Ok(choice));
    }
}

#[test]
fn an_unknown_controller_is_named_and_the_baselines_are_among_what_there_is() {
    let error = "stack-vegas".parse::<Choice>().unwrap_err().to_string();
    assert!(
        error.contains("`stack-vegas`") && error.contains("stack-own"),
        "{error}"
    );
}

#[test]
fn a_baseline_accepts_neither_components_nor_arguments() {
    for more in ["+start=hystartpp", "(1)"] {
        let error = format!("stack-own{more}").parse::<Choice>().unwrap_err();
        let whole = format!("`stack-own` is a whole controller: leave out `{more}`");
        assert_eq!(error.to_string(), whole);
    }
}

#[test]
fn a_list_may_mix_specs_and_baselines() {
    let list = Choice::list("reno,stack-own,cubic(fast_convergence=off)").unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(list[1], Choice::Baseline("stack-own"));
}

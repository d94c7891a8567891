//! Specs in a build without the feature `papers`.
#![cfg(not(feature = "papers"))]

use playrate_cc::ControllerSpec;
use rstest::rstest;

#[rstest]
#[case("reno(counting=acks)", Some("counting"))]
#[case("cubic(recovery=tcp)", Some("recovery"))]
#[case("ccp-lb(ssthresh=64kB)", Some("ssthresh"))]
#[case("cubic+start=hystart", Some("start=hystart"))]
#[case("reno(count=acks)", None)]
#[case("cubic+start=fast", None)]
fn only_the_error_about_an_option_of_the_papers_senders_names_the_feature(
    #[case] text: &str,
    #[case] option: Option<&str>,
) {
    let error = text.parse::<ControllerSpec>().expect_err("must be refused");
    let note = option.map(|name| format!(" (playrate-cc has `{name}` only with its feature `papers`)"));
    assert!(error.to_string().ends_with(note.as_deref().unwrap_or_default()));
    assert_eq!(error.to_string().contains("feature"), note.is_some(), "{error}");
}

#[rstest]
#[case("cubic(on,credit,3,0)", "cubic(initial_window=3,max_ssthresh=0)")]
#[case("reno-new-cwv(ssthresh=law)", "reno+idle=new-cwv(ssthresh=law)")]
#[case("cubic+start=hystartpp", "cubic+start=hystartpp")]
fn every_other_option_means_the_same(#[case] text: &str, #[case] canonical: &str) {
    let spec: ControllerSpec = text.parse().expect("a valid spec");
    assert_eq!(spec.to_string(), canonical);
}

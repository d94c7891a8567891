//! Suggestions for misspelt names.

/// The allowed name that is nearest to `given`, if one is near.
pub(super) fn nearest(given: &str, allowed: &[&'static str]) -> Option<&'static str> {
    let given = given.to_lowercase();
    let near = |name: &str| {
        let distance = strsim::levenshtein(&given, name);
        let contained = given.len() >= 3 && (name.contains(&given) || given.contains(name));
        let limit = (name.len() / 3).max(2);
        (distance <= limit && distance < given.len() || contained).then_some(distance)
    };
    allowed
        .iter()
        .filter_map(|name| Some((near(name)?, *name)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("cubik", Some("cubic"))]
    #[case("RENO", Some("reno"))]
    #[case("newreno", Some("reno"))]
    #[case("hystart", Some("hystartpp"))]
    #[case("bbr", None)]
    fn suggests_only_what_is_near(#[case] given: &str, #[case] name: Option<&str>) {
        assert_eq!(nearest(given, &["reno", "cubic", "hystartpp"]), name);
    }
}

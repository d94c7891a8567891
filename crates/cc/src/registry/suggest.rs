//! Which name was probably meant.

/// The allowed name that is nearest to `given`, if one is near.
pub(crate) fn nearest(given: &str, allowed: &[&'static str]) -> Option<&'static str> {
    let given = given.to_lowercase();
    let near = |name: &str| {
        let distance = edits(&given, name);
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

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut last = i + 1;
        for (j, right) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(usize::MAX);
            let cost = diagonal + usize::from(left != *right);
            diagonal = above;
            if let Some(cell) = row.get_mut(j) {
                *cell = last;
            }
            last = cost.min(above + 1).min(last + 1);
        }
        if let Some(cell) = row.last_mut() {
            *cell = last;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("kitten", "sitting", 3)]
    #[case("", "abc", 3)]
    #[case("abc", "", 3)]
    #[case("cubic", "cubic", 0)]
    fn counts_edits(#[case] a: &str, #[case] b: &str, #[case] distance: usize) {
        assert_eq!(edits(a, b), distance);
    }

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

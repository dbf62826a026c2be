//! Finds the known name that a misspelled one probably means.

use strsim::levenshtein;

/// Maximum number of wrong letters for a name to be suggested.
const DISTANCE_MAX: usize = 3;

/// Returns the candidate closest to `name`, if one is close enough.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = DISTANCE_MAX.min(name.chars().count() / 2);
    let distances = candidates
        .into_iter()
        .map(|candidate| (levenshtein(name, candidate), candidate));
    let near = distances.filter(|(distance, _)| *distance <= allowed);
    near.min().map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_what_is_near_is_suggested() {
        let keys = ["listen", "workers", "origins"];
        assert_eq!(nearest("lisen", keys), Some("listen"));
        assert_eq!(nearest("wrokers", keys), Some("workers"));
        assert_eq!(nearest("tls", keys), None);
        assert_eq!(nearest("x", keys), None);
    }
}

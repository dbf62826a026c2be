//! Finds the known name that a misspelled one probably means.

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
        .map(|candidate| (distance(name, candidate), candidate));
    let near = distances.filter(|(distance, _)| *distance <= allowed);
    near.min().map(|(_, candidate)| candidate)
}

/// Returns the number of letters to insert, delete or replace to turn one name into the other
/// (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, left) in from.chars().enumerate() {
        let mut diagonal = index;
        row[0] = index + 1;
        for (column, right) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_count_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let keys = ["listen", "workers", "origins"];
        assert_eq!(nearest("lisen", keys), Some("listen"));
        assert_eq!(nearest("wrokers", keys), Some("workers"));
        assert_eq!(nearest("tls", keys), None);
        assert_eq!(nearest("x", keys), None);
    }
}

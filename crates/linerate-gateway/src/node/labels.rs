//! Numeric labels for namespace names, for counters that should not store strings.

use std::sync::Arc;

use parking_lot::RwLock;

/// The maximum number of names. Channels of any further namespace are counted with those that have
/// no namespace. The limit is four times the number of namespaces that can be configured at a time,
/// because a label must keep its meaning when the configuration changes.
const NAMES_MAX: usize = 1_024;

/// Assigns numbers to names in the order of their first use, and keeps them. 0 is the empty name.
#[derive(Debug)]
pub(crate) struct Labels(RwLock<Vec<Arc<str>>>);

impl Labels {
    /// Returns the number of a name.
    pub(crate) fn number(&self, name: &str) -> u16 {
        let names = self.0.read();
        if let Some(number) = find(&names, name) {
            return number;
        }
        drop(names);
        let mut names = self.0.write();
        if let Some(number) = find(&names, name) {
            return number;
        }
        if names.len() == NAMES_MAX {
            return 0;
        }
        names.push(name.into());
        (names.len() - 1) as u16
    }

    /// Returns the name with a number.
    pub(crate) fn name(&self, number: u16) -> Arc<str> {
        let names = self.0.read();
        names.get(usize::from(number)).cloned().unwrap_or_default()
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self(RwLock::new(vec!["".into()]))
    }
}

fn find(names: &[Arc<str>], name: &str) -> Option<u16> {
    let place = names.iter().position(|known| **known == *name);
    place.map(|place| place as u16)
}

#[cfg(test)]
mod tests {
    use super::{Labels, NAMES_MAX};

    #[test]
    fn a_name_keeps_its_number_and_one_too_many_gets_none() {
        let labels = Labels::default();
        assert_eq!((labels.number(""), labels.number("a")), (0, 1));
        for number in 2..NAMES_MAX {
            assert_eq!(usize::from(labels.number(&number.to_string())), number);
        }
        assert_eq!((labels.number("beyond"), labels.number("a")), (0, 1));
        assert_eq!(
            (&*labels.name(1), &*labels.name(2), &*labels.name(9_999)),
            ("a", "2", "")
        );
    }
}

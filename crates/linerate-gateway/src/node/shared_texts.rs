//! Texts that many clients have in common.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashSet;

/// The smallest number of texts at which those that no client has any more are removed.
const SWEPT_MIN: usize = 64;

/// Texts that are stored once, however many clients have them.
#[derive(Debug, Default)]
pub(super) struct SharedTexts {
    texts: HashSet<Arc<str>, RandomState>,
    /// The number of texts that were in use when the others were last removed.
    used: usize,
}

impl SharedTexts {
    /// Returns a text, which is the same for all who ask for an equal one while others have it.
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        if self.texts.len() >= SWEPT_MIN.max(2 * self.used) {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.texts.shrink_to_fit();
            self.used = self.texts.len();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let mut texts = SharedTexts::default();
        let one = texts.share("Firefox");
        assert!(Arc::ptr_eq(&one, &texts.share("Firefox")));
        assert!(!Arc::ptr_eq(&one, &texts.share("Chrome")));
    }

    #[test]
    fn texts_that_no_client_has_are_removed() {
        let mut texts = SharedTexts::default();
        let used: Vec<_> = (0..100)
            .map(|n| texts.share(&format!("used {n}")))
            .collect();
        for number in 0..10_000 {
            texts.share(&format!("forged {number}"));
            assert!(texts.texts.len() <= 2 * used.len());
        }
        for (number, text) in used.iter().enumerate() {
            assert!(Arc::ptr_eq(text, &texts.share(&format!("used {number}"))));
        }
    }
}

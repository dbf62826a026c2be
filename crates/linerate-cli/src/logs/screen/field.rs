//! A line of text that is being typed.

/// The longest text in bytes, which is that of a filter.
const BYTES_MAX: usize = 8 << 10;

/// A text with a cursor.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct TextField {
    chars: Vec<char>,
    /// The number of characters before the cursor.
    cursor: usize,
}

/// A change of the text or of the cursor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Edit {
    /// Deletes the character before the cursor.
    Backspace,
    Clear,
    /// Deletes the character at the cursor.
    Delete,
    /// Deletes the word before the cursor.
    DeleteWord,
    End,
    Home,
    Insert(String),
    Left,
    Right,
}

impl TextField {
    pub(super) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.chars.remove(self.cursor);
            }
            Edit::Delete if self.cursor < self.chars.len() => {
                self.chars.remove(self.cursor);
            }
            Edit::Backspace | Edit::Delete => {}
            Edit::Clear => *self = Self::default(),
            Edit::DeleteWord => {
                let is_space = |char: &&char| char.is_whitespace();
                let before = self.chars[..self.cursor].iter().rev();
                let spaces = before.clone().take_while(is_space).count();
                let word = before.skip(spaces).take_while(|char| !is_space(char));
                let start = self.cursor - spaces - word.count();
                self.chars.drain(start..self.cursor);
                self.cursor = start;
            }
            Edit::End => self.cursor = self.chars.len(),
            Edit::Home => self.cursor = 0,
            Edit::Insert(text) => self.insert(&text),
            Edit::Left => self.cursor = self.cursor.saturating_sub(1),
            Edit::Right => self.cursor = self.chars.len().min(self.cursor + 1),
        }
    }

    /// Inserts text at the cursor, as far as it fits. Line ends of pasted text become spaces.
    fn insert(&mut self, text: &str) {
        let mut room = BYTES_MAX.saturating_sub(self.text().len());
        for char in text.chars() {
            let char = if char.is_control() { ' ' } else { char };
            if char.len_utf8() > room {
                return;
            }
            room -= char.len_utf8();
            self.chars.insert(self.cursor, char);
            self.cursor += 1;
        }
    }

    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Returns the number of characters before the cursor.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Edit, TextField};

    fn edited(edits: impl IntoIterator<Item = Edit>) -> (String, usize) {
        let mut field = TextField::default();
        edits.into_iter().for_each(|edit| field.edit(edit));
        (field.text(), field.cursor())
    }

    fn insert(text: &str) -> Edit {
        Edit::Insert(text.to_owned())
    }

    #[test]
    fn text_is_edited_at_the_cursor() {
        let typed = || [insert("größr"), Edit::Left, insert("e")];
        assert_eq!(edited(typed()), ("größer".to_owned(), 5));
        let then = |edits: &[Edit]| edited(typed().into_iter().chain(edits.to_vec()));
        assert_eq!(then(&[Edit::Backspace]).0, "größr");
        assert_eq!(then(&[Edit::Delete]).0, "größe");
        assert_eq!(
            then(&[Edit::Home, Edit::Delete, Edit::Backspace]),
            ("rößer".into(), 0)
        );
        assert_eq!(
            then(&[Edit::End, Edit::Right, insert("!")]),
            ("größer!".into(), 7)
        );
        assert_eq!(then(&[Edit::Home, Edit::Left]).1, 0);
        assert_eq!(then(&[Edit::Clear]), (String::new(), 0));
    }

    #[test]
    fn a_word_is_deleted_with_the_spaces_after_it() {
        let deleted = |text| edited([insert(text), Edit::DeleteWord]).0;
        assert_eq!(deleted("status >= 500  "), "status >= ");
        assert_eq!(deleted("status"), "");
        assert_eq!(deleted(""), "");
    }

    #[test]
    fn text_has_a_limit_and_no_control_characters() {
        assert_eq!(edited([insert("a\nb\x1bc")]).0, "a b c");
        let (text, _) = edited([insert(&"x".repeat(BYTES_MAX)), insert("y")]);
        assert_eq!(text.len(), BYTES_MAX);
        let (text, _) = edited([insert(&"€".repeat(BYTES_MAX))]);
        assert_eq!(text.len(), BYTES_MAX / 3 * 3);
    }
}

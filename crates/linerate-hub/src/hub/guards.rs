//! Which classes a publication may belong to.

mod look;

use hashbrown::HashMap;

use crate::{Guard, Publication};

/// The classes of a channel by their guards.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// Those without a guard.
    always: Vec<usize>,
    fields: Vec<Field>,
}

/// The classes that are guarded by one field, by the value that it must hold.
#[derive(Debug)]
struct Field {
    name: String,
    classes: HashMap<String, Vec<usize>, foldhash::fast::RandomState>,
}

impl Guards {
    /// Adds the class at `place`.
    pub(crate) fn add(&mut self, place: usize, guard: Option<&Guard>) {
        let Some(guard) = guard else {
            return self.always.push(place);
        };
        let at = self.find(&guard.field).unwrap_or_else(|| {
            self.fields.push(Field {
                name: guard.field.clone(),
                classes: HashMap::default(),
            });
            self.fields.len() - 1
        });
        let classes = self.fields[at].classes.entry(guard.value.clone());
        classes.or_default().push(place);
    }

    /// Removes the class at `place`.
    pub(crate) fn remove(&mut self, place: usize, guard: Option<&Guard>) {
        let Some(guard) = guard else {
            return self.always.retain(|other| *other != place);
        };
        let Some(at) = self.find(&guard.field) else {
            return;
        };
        let field = &mut self.fields[at];
        if let Some(classes) = field.classes.get_mut(&guard.value) {
            classes.retain(|other| *other != place);
            if classes.is_empty() {
                field.classes.remove(&guard.value);
            }
        }
        if field.classes.is_empty() {
            self.fields.swap_remove(at);
        }
    }

    /// Calls `visit` with the place of each class that `publication` may belong to.
    pub(crate) fn visit(&self, publication: &Publication, mut visit: impl FnMut(usize)) {
        self.always.iter().copied().for_each(&mut visit);
        if self.fields.is_empty() {
            return;
        }
        // What the look skips is not checked for UTF-8.
        if !publication.is_text() {
            return;
        }
        let found = look::find(&self.fields, publication.payload());
        let classes = found.into_iter().flatten().flatten();
        classes.copied().for_each(&mut visit);
    }

    fn find(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|other| other.name == field)
    }
}

#[cfg(test)]
mod tests {
    use super::Guards;
    use crate::{Guard, Publication};

    fn guard(field: &str, value: &str) -> Guard {
        Guard {
            field: field.into(),
            value: value.into(),
            is_sufficient: true,
        }
    }

    fn visited(guards: &Guards, json: &str) -> Vec<usize> {
        let mut places = Vec::new();
        let publication = Publication::new(json.to_owned().into());
        guards.visit(&publication, |place| places.push(place));
        places.sort_unstable();
        places
    }

    fn guards() -> Guards {
        let mut guards = Guards::default();
        guards.add(0, None);
        guards.add(1, Some(&guard("level", "error")));
        guards.add(2, Some(&guard("level", "error")));
        guards.add(3, Some(&guard("level", "info")));
        guards.add(4, Some(&guard("host", "a")));
        guards
    }

    #[test]
    fn only_classes_whose_guard_fits_are_visited() {
        let guards = guards();
        assert_eq!(visited(&guards, r#"{"level":"error"}"#), [0, 1, 2]);
        assert_eq!(
            visited(&guards, r#"{"level":"info","host":"a"}"#),
            [0, 3, 4]
        );
        for other in [
            "",
            "nothing",
            "[]",
            "{}",
            r#"{"level":1,"host":null}"#,
            r#"{"level":"debug"}"#,
            r#"{"level":"error"} x"#,
            r#"{"level":"error","#,
            r#"{"level":["error"]}"#,
            r#"{"level":{"level":"error"}}"#,
            r#"{"in":{"level":"error"},"Level":"error"}"#,
            r#"["level","error"]"#,
        ] {
            assert_eq!(visited(&guards, other), [0], "{other}");
        }
    }

    #[test]
    fn names_and_values_may_be_escaped_and_the_last_of_a_name_counts() {
        let guards = guards();
        for json in [
            r#"{"a":[{"b":"}"}],"l\u0065vel":"err\u006fr","z":1e999}"#,
            r#"{"level":"info","level":"error"}"#,
            r#" { "level" : "error" , "host" : null } "#,
        ] {
            assert_eq!(visited(&guards, json), [0, 1, 2], "{json}");
        }
    }

    #[test]
    fn what_is_no_utf8_fits_no_guard() {
        let publication = Publication::new(b"{\"level\":\"error\",\"x\":\"\xff\"}"[..].into());
        let mut places = Vec::new();
        guards().visit(&publication, |place| places.push(place));
        assert_eq!(places, [0]);
    }

    #[test]
    fn a_class_that_is_removed_is_visited_no_more() {
        let mut guards = guards();
        guards.remove(1, Some(&guard("level", "error")));
        assert_eq!(visited(&guards, r#"{"level":"error"}"#), [0, 2]);
        guards.remove(2, Some(&guard("level", "error")));
        guards.remove(3, Some(&guard("level", "info")));
        guards.remove(4, Some(&guard("host", "a")));
        guards.remove(0, None);
        assert_eq!(visited(&guards, r#"{"level":"info","host":"a"}"#), [0; 0]);
        assert!(guards.fields.is_empty(), "nothing is left");
    }
}

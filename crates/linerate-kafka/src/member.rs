//! Members of JSON objects, found without a copy of anything else.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Returns the member of a JSON object at `path`, or `None` if it has none, or if `null` is on the
/// path.
///
/// # Errors
/// `json` is not JSON, or something else on the path is not an object.
pub(crate) fn member<'a>(
    json: &'a [u8],
    path: &[String],
) -> Result<Option<&'a str>, serde_json::Error> {
    let mut found: &RawValue = serde_json::from_slice(json)?;
    for name in path {
        if found.get() == "null" {
            return Ok(None);
        }
        let mut object = serde_json::Deserializer::from_str(found.get());
        match Member(name).deserialize(&mut object)? {
            Some(member) => found = member,
            None => return Ok(None),
        }
    }
    Ok(Some(found.get()))
}

/// Reads one member of an object. The last one of several with the same name counts.
struct Member<'n>(&'n str);

impl<'a> DeserializeSeed<'a> for Member<'_> {
    type Value = Option<&'a RawValue>;

    fn deserialize<D: Deserializer<'a>>(self, object: D) -> Result<Self::Value, D::Error> {
        object.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Member<'_> {
    type Value = Option<&'a RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<Cow<'a, str>>()? {
            if name == self.0 {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn members_are_found_at_any_depth_and_keep_their_text() {
        let json = br#" {"a": {"b": 12345678901234567890123, "b": [1, 2]}, "\u0063": null} "#;
        let find = |path: &str| {
            let path: Vec<_> = path.split('.').map(str::to_owned).collect();
            member(json, &path)
        };
        assert_eq!(find("a.b").unwrap(), Some("[1, 2]"));
        assert_eq!(find("c").unwrap(), Some("null"));
        assert_eq!(find("c.d").unwrap(), None);
        assert_eq!(find("d").unwrap(), None);
        assert!(find("a.b.c").is_err());
        assert!(member(b"{\"a\":1", &["a".to_owned()]).is_err());
    }
}

//! Writes JSON objects without intermediate values.

use serde::Serialize;

/// An object that is being written: opened by [`Object::open`], closed by [`Object::close`].
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_empty: true,
        }
    }

    /// Starts a member whose value the caller appends. `name` must not need escaping.
    pub(super) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Starts a member whose name comes from a peer and may need escaping.
    pub(super) fn member_escaped(&mut self, name: &str) -> &mut Vec<u8> {
        self.separate();
        scalar(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(super) fn object(&mut self, name: &str) -> Object<'_> {
        Object::open(self.member(name))
    }

    /// Writes a string or a number, unless it is the default value, which readers of this protocol
    /// assume.
    pub(super) fn scalar<T: Default + PartialEq + Serialize>(&mut self, name: &str, value: T) {
        if value != T::default() {
            scalar(self.member(name), value);
        }
    }

    pub(super) fn close(self) {
        self.out.push(b'}');
    }

    fn separate(&mut self) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
    }
}

/// Appends a string or a number.
pub(super) fn scalar(out: &mut Vec<u8>, value: impl Serialize) {
    serde_json::to_writer(out, &value)
        .expect("serializing strings and numbers to a Vec cannot fail");
}

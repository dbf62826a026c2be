//! The fields of a request that filters can name.

/// A field of a request.
///
/// String fields are always present: the empty string stands for a request without a value.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Field {
    /// The client's address.
    Address,
    /// The `User-Agent` header.
    Agent,
    /// The program that sent the request, by its name in [`Summary::bots`].
    ///
    /// [`Summary::bots`]: crate::summary::Summary::bots
    Bot,
    /// The browser, by its name in [`Summary::browsers`]. Empty for programs.
    ///
    /// [`Summary::browsers`]: crate::summary::Summary::browsers
    Browser,
    /// The size of the response in bytes, a number.
    BytesSent,
    /// The country of the address, as its ISO code. Empty if the country is unknown.
    Country,
    /// How long the request took, in microseconds. Missing if the log does not record it.
    DurationUs,
    /// The virtual host.
    Host,
    /// The method.
    Method,
    /// The path without its query string.
    Path,
    /// The path with its variable parts replaced: `/user/:id` for `/user/123`.
    PathPattern,
    /// The `Referer` header.
    Referrer,
    /// The status, a number from 0 to 999.
    Status,
    /// The class of the status: `1xx` to `5xx`, or `other`.
    StatusClass,
    /// The operating system of the browser, by its name in [`Summary::systems`]. Empty for
    /// programs.
    ///
    /// [`Summary::systems`]: crate::summary::Summary::systems
    System,
    /// When the request was logged, in seconds since 1970-01-01 UTC.
    Time,
}

impl Field {
    /// All fields, sorted by name.
    pub const ALL: [Self; 16] = [
        Self::Address,
        Self::Agent,
        Self::Bot,
        Self::Browser,
        Self::BytesSent,
        Self::Country,
        Self::DurationUs,
        Self::Host,
        Self::Method,
        Self::Path,
        Self::PathPattern,
        Self::Referrer,
        Self::Status,
        Self::StatusClass,
        Self::System,
        Self::Time,
    ];

    /// The fields whose values can be listed.
    pub const LISTED: [Self; 12] = [
        Self::Address,
        Self::Agent,
        Self::Bot,
        Self::Browser,
        Self::Country,
        Self::Host,
        Self::Method,
        Self::Path,
        Self::PathPattern,
        Self::Referrer,
        Self::Status,
        Self::System,
    ];

    /// Returns the field's name in filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Agent => "agent",
            Self::Bot => "bot",
            Self::Browser => "browser",
            Self::BytesSent => "bytes_sent",
            Self::Country => "country",
            Self::DurationUs => "duration_us",
            Self::Host => "host",
            Self::Method => "method",
            Self::Path => "path",
            Self::PathPattern => "path_pattern",
            Self::Referrer => "referrer",
            Self::Status => "status",
            Self::StatusClass => "status_class",
            Self::System => "system",
            Self::Time => "time",
        }
    }

    /// Returns the field with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Returns whether the field is a number rather than a string.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Self::BytesSent | Self::DurationUs | Self::Status | Self::Time
        )
    }

    /// Returns whether a request may have this value in a string field.
    pub(super) fn may_equal(self, value: &str) -> bool {
        match self {
            Self::Country => {
                value.is_empty()
                    || (value.len() == 2 && value.bytes().all(|it| it.is_ascii_uppercase()))
            }
            Self::StatusClass => {
                value == "other" || matches!(value.as_bytes(), [b'1'..=b'5', b'x', b'x'])
            }
            _ => true,
        }
    }

    /// Returns a description of its possible values for error messages.
    pub(super) fn values(self) -> &'static str {
        match self {
            Self::Country => "\"\" or an ISO 3166 code of two capital letters",
            Self::Status => "a whole number from 0 to 999",
            Self::StatusClass => "\"1xx\" to \"5xx\" or \"other\"",
            Self::Time => "a whole number of seconds since 1970",
            Self::BytesSent | Self::DurationUs => "a whole number from 0",
            _ => "any string",
        }
    }

    /// Returns what error messages call its values.
    pub(super) fn kind(self) -> &'static str {
        match self.is_number() {
            true => "a number",
            false => "a string",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn fields_are_found_by_their_sorted_names() {
        assert!(Field::ALL.is_sorted_by_key(|field| field.name()));
        for field in Field::ALL {
            assert_eq!(Field::find(field.name()), Some(field));
        }
        assert_eq!(Field::find("city"), None);
    }
}

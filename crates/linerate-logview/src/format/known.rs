//! The known log formats, which are registered at the end of this file.

use super::layout::Layout;
use super::{Reason, Record, timestamp};
use crate::lines::Marks;

/// Defines [`KnownFormat`], whose methods call those of the types that implement [`Layout`].
macro_rules! formats {
    ($($(#[$attribute:meta])* $module:ident::$name:ident,)*) => {
        /// The layout of the lines of a log, in one of the known formats.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(super) enum KnownFormat {
            $($(#[$attribute])* $name(super::$module::$name),)*
        }

        impl KnownFormat {
            /// Returns the layouts that have a name and can be detected.
            pub(super) fn named() -> Vec<Self> {
                let mut named = Vec::new();
                $(
                    $(#[$attribute])*
                    named.extend(super::$module::$name::NAMED.iter().cloned().map(Self::$name));
                )*
                named
            }

            pub(super) fn refined(self, lines: &[&[u8]]) -> Self {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => Self::$name(layout.refined(lines)),)*
                }
            }

            pub(super) fn name(&self) -> &str {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.name(),)*
                }
            }

            #[inline]
            pub(super) fn parse<'a>(
                &self,
                clock: &mut timestamp::Reader,
                scratch: &'a mut Vec<u8>,
                line: &'a [u8],
            ) -> Result<Record<'a>, Reason> {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.parse(clock, scratch, line),)*
                }
            }

            pub(super) fn wants_marks(&self) -> bool {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.wants_marks(),)*
                }
            }

            #[inline(always)]
            pub(super) fn parse_usual<'a>(
                &self,
                clock: &mut timestamp::Reader,
                line: &'a [u8],
                marks: Marks<'_>,
            ) -> Option<Record<'a>> {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.parse_usual(clock, line, marks),)*
                }
            }

            pub(super) fn memory_bytes(&self) -> usize {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.memory_bytes(),)*
                }
            }
        }
    };
}

// If several formats fit equally many lines of a log, the first one is detected.
formats! {
    combined::Combined,
    json::Json,
    template::Template,
    #[cfg(test)]
    tabbed::Tabbed,
}

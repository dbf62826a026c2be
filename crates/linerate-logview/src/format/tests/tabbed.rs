//! The format `tabbed`: time, address, method, target, status and bytes, with tabs in between.

use super::fields::{Fields, Slot, Text};
use super::known::Layout;
use super::{Reason, Record, moment, timestamp};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Tabbed;

impl Layout for Tabbed {
    const NAMED: &'static [Self] = &[Self];

    fn name(&self) -> &str {
        "tabbed"
    }

    fn parse<'a>(
        &self,
        _clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        let mut columns = line.split(|&byte| byte == b'\t');
        let time = columns.next().and_then(moment::any);
        let mut fields = Fields::default();
        fields.time = Some(time.ok_or(Reason::BadTimestamp)?);
        for slot in [
            Slot::Address,
            Slot::Method,
            Slot::Target,
            Slot::Status,
            Slot::Bytes,
        ] {
            let text = Text {
                bytes: columns.next().ok_or(Reason::MissingField)?,
                is_escaped: false,
            };
            fields.set(slot, text)?;
        }
        fields.record(scratch)
    }
}

//! Times in a strftime(3) pattern, as in Apache's `%{%d/%b/%Y:%H:%M:%S}t`.

use super::super::moment::{self, CivilTime};
use super::super::timestamp;

/// One part of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Item {
    Byte(u8),
    /// One or two digits, optionally padded with a space.
    Day,
    /// A number since 1970, in units of 10^-n seconds.
    Epoch(u32),
    /// Digits that are not needed: fractions of a second, weeks, days of the year.
    Ignored,
    HalfOfTheDay,
    Hour,
    Minute,
    Month,
    MonthName,
    Second,
    /// The name of a weekday or of a time zone.
    Word,
    Year,
    YearOfTwoDigits,
    Zone,
}

/// Returns the items of a pattern, or the first unknown character after a `%`.
pub(super) fn compile(pattern: &str) -> Result<Vec<Item>, char> {
    let mut items = Vec::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            let mut bytes = [0; 4];
            let bytes = char.encode_utf8(&mut bytes).bytes();
            items.extend(bytes.map(Item::Byte));
            continue;
        }
        // E, O and the GNU flags select other notations, which servers do not write.
        let directive = chars.find(|char| !"EO-_0:".contains(*char)).unwrap_or('%');
        items.extend_from_slice(directive_items(directive).ok_or(directive)?);
    }
    Ok(items)
}

/// Returns whether the items together identify a date.
pub(super) fn has_a_date(items: &[Item]) -> bool {
    let has = |wanted: &[Item]| items.iter().any(|item| wanted.contains(item));
    let has_epoch = items.iter().any(|item| matches!(item, Item::Epoch(_)));
    let has_year = has(&[Item::Year, Item::YearOfTwoDigits]);
    has_epoch || has_year && has(&[Item::Month, Item::MonthName]) && has(&[Item::Day])
}

/// Reads the items from the start of `text` into `civil`. Returns what follows them, and the
/// seconds if there is an epoch.
pub(super) fn read<'a>(
    items: &[Item],
    mut text: &'a [u8],
    civil: &mut CivilTime,
) -> Option<(Option<i64>, &'a [u8])> {
    let mut seconds = None;
    for item in items {
        text = match item {
            Item::Epoch(shift) => {
                let (time, rest) = moment::epoch(text, *shift)?;
                seconds = Some(time);
                rest
            }
            _ => read_item(*item, text, civil)?,
        };
    }
    Some((seconds, text))
}

fn directive_items(directive: char) -> Option<&'static [Item]> {
    use Item::{
        Byte, Day, Epoch, HalfOfTheDay, Hour, Ignored, Minute, Month, MonthName, Second, Word,
        Year, YearOfTwoDigits, Zone,
    };
    Some(match directive {
        '%' => &[Byte(b'%')],
        'a' | 'A' | 'Z' => &[Word],
        'b' | 'B' | 'h' => &[MonthName],
        'd' | 'e' => &[Day],
        'D' => &[Month, Byte(b'/'), Day, Byte(b'/'), YearOfTwoDigits],
        'F' => &[Year, Byte(b'-'), Month, Byte(b'-'), Day],
        'H' | 'I' | 'k' | 'l' => &[Hour],
        'f' | 'j' | 'N' | 'u' | 'U' | 'V' | 'w' | 'W' => &[Ignored],
        'm' => &[Month],
        'M' => &[Minute],
        'n' => &[Byte(b'\n')],
        'p' | 'P' => &[HalfOfTheDay],
        'R' => &[Hour, Byte(b':'), Minute],
        's' => &[Epoch(0)],
        'S' => &[Second],
        't' => &[Byte(b'\t')],
        'T' => &[Hour, Byte(b':'), Minute, Byte(b':'), Second],
        'y' => &[YearOfTwoDigits],
        'Y' => &[Year],
        'z' => &[Zone],
        _ => return None,
    })
}

fn read_item<'a>(item: Item, text: &'a [u8], civil: &mut CivilTime) -> Option<&'a [u8]> {
    if let Some(rest) = read_text(item, text, civil) {
        return rest;
    }
    let (number, rest) = number(text, if item == Item::Year { 4 } else { 2 })?;
    match item {
        Item::Day => civil.day = Some(number),
        Item::Hour => civil.hour = number,
        Item::Minute => civil.minute = number,
        Item::Month => civil.month = Some(usize::try_from(number.checked_sub(1)?).ok()?),
        Item::Second => civil.second = number,
        Item::Year => civil.year = Some(number),
        // POSIX: 69 to 99 are in the 20th century.
        _ => civil.year = Some(number + if number < 69 { 2_000 } else { 1_900 }),
    }
    Some(rest)
}

/// Reads an item that is not a number. Returns `None` for numeric items.
fn read_text<'a>(item: Item, text: &'a [u8], civil: &mut CivilTime) -> Option<Option<&'a [u8]>> {
    Some(match item {
        Item::Byte(byte) => text
            .split_first()
            .filter(|(first, _)| **first == byte)
            .map(|(_, rest)| rest),
        Item::Ignored => Some(skip(text, |byte| byte.is_ascii_digit())),
        Item::Word => Some(skip(text, |byte| byte.is_ascii_alphabetic())),
        Item::MonthName => month_name(text, civil),
        Item::Zone => moment::zone(text).map(|(minutes, rest)| {
            civil.zone_minutes = minutes;
            rest
        }),
        Item::HalfOfTheDay => text.split_first_chunk::<2>().and_then(|(half, rest)| {
            civil.is_afternoon = Some(match &half.to_ascii_lowercase()[..] {
                b"am" => false,
                b"pm" => true,
                _ => return None,
            });
            Some(rest)
        }),
        _ => return None,
    })
}

/// Reads `Jan` or `January`.
fn month_name<'a>(text: &'a [u8], civil: &mut CivilTime) -> Option<&'a [u8]> {
    let (name, rest) = text.split_first_chunk::<3>()?;
    civil.month = Some(timestamp::month(*name)?);
    Some(skip(rest, |byte| byte.is_ascii_alphabetic()))
}

/// Reads up to `digits_max` digits, optionally preceded by one space.
fn number(text: &[u8], digits_max: usize) -> Option<(i64, &[u8])> {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let head = &text[..text.len().min(digits_max)];
    let len = head.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(len);
    let number = super::super::number::decimal(digits)?;
    Some((i64::try_from(number).ok()?, rest))
}

fn skip(text: &[u8], is_part: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|&byte| !is_part(byte));
    &text[end.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::{CivilTime, compile, has_a_date, read};

    fn time(pattern: &str, text: &str) -> Option<i64> {
        let items = compile(pattern).unwrap();
        let mut civil = CivilTime::default();
        let (seconds, rest) = read(&items, text.as_bytes(), &mut civil)?;
        seconds
            .or_else(|| civil.unix_time())
            .filter(|_| rest.is_empty())
    }

    #[test]
    fn patterns_of_strftime_are_read() {
        for (pattern, text) in [
            ("%d/%b/%Y:%H:%M:%S %z", "22/Jan/2021:01:47:05 +0000"),
            ("%d/%b/%Y:%T %z", "22/Jan/2021:02:47:05 +0100"),
            ("%Y-%m-%dT%H:%M:%S%z", "2021-01-22T01:47:05+0000"),
            ("%F %T", "2021-01-22 01:47:05"),
            ("%a %b %e %H:%M:%S %Y", "Fri Jan 22 01:47:05 2021"),
            (
                "%A, %B %d %Y %I:%M:%S %p",
                "Friday, January 22 2021 01:47:05 AM",
            ),
            ("%D %R:%S", "01/22/21 01:47:05"),
            ("%s", "1611280025"),
        ] {
            assert_eq!(time(pattern, text), Some(1_611_280_025), "{pattern}");
        }
        assert_eq!(time("%F %T", "2021-02-30 01:47:05"), None);
        assert_eq!(time("%F", "2021-13-01"), None);
        assert_eq!(time("%F", "2021-00-01"), None);
        assert_eq!(time("%F", "2021-1"), None);
        assert_eq!(time("%e", ""), None);
    }

    #[test]
    fn unknown_letters_are_named() {
        assert_eq!(compile("%Y-%q"), Err('q'));
        assert_eq!(compile("%Y %"), compile("%Y %%"));
    }

    #[test]
    fn dates_need_year_month_and_day() {
        for (pattern, expected) in [
            ("%F", true),
            ("%D", true),
            ("%s", true),
            ("%T", false),
            ("%b %d", false),
        ] {
            assert_eq!(
                has_a_date(&compile(pattern).unwrap()),
                expected,
                "{pattern}"
            );
        }
    }
}

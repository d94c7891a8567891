//! Values of structured fields ([RFC 9651](https://www.rfc-editor.org/rfc/rfc9651)) in the form that players and
//! servers write.
//!
//! A strict parser rejects a whole field for one bad member. Players are not that strict, so members are separated here
//! and parsed one by one; a value that is not structured is kept as text.

use playrate_units::Bitrate;
use sfv::{BareItemFromInput, ItemSerializer, Parser, RefBareItem, StringRef, TokenRef};

/// Splits `text` at each `separator` outside quoted strings, and trims the surrounding space.
///
/// A string without a closing quote extends to the end of the text.
pub(crate) fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        let separates = character == separator && !quoted;
        if character == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && character == '\\' && !escaped;
        separates
    })
    .map(str::trim)
}

/// A member `key=value`; a key alone has the value `?1` (true).
pub(crate) fn member(text: &str) -> (&str, FieldValue<'_>) {
    member_of(text, "")
}

/// A [`member`]. The value of an inner list, such as `(4820;v 128;a)`, is that of the item with the parameter `wanted`,
/// or else the first one.
pub(crate) fn member_of<'a>(text: &'a str, wanted: &str) -> (&'a str, FieldValue<'a>) {
    match text.split_once('=') {
        Some((key, value)) => {
            let (value, parameters) = item_of(value.trim(), wanted);
            let value = FieldValue::parse(value);
            (key.trim(), FieldValue { parameters, ..value })
        }
        None => (text, FieldValue::parse("?1")),
    }
}

/// The value selected from an inner list, and its parameters.
fn item_of<'a>(text: &'a str, wanted: &str) -> (&'a str, &'a str) {
    let Some(list) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return (text, "");
    };
    let items = || split(list, ' ').filter(|item| !item.is_empty());
    let own = items().find(|item| split(item, ';').skip(1).any(|parameter| parameter == wanted));
    let item = own.or_else(|| items().next()).unwrap_or_default();
    let value = split(item, ';').next().unwrap_or_default();
    (value, item.get(value.len()..).unwrap_or_default())
}

/// The value of a member.
#[derive(Debug)]
pub(crate) struct FieldValue<'a> {
    text: &'a str,
    /// Parameters of an item in an inner list, each after a semicolon.
    parameters: &'a str,
    item: Option<BareItemFromInput<'a>>,
}

impl<'a> FieldValue<'a> {
    fn parse(text: &'a str) -> Self {
        Self {
            text,
            parameters: "",
            item: Parser::new(text).parse_item().ok(),
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<FieldValue<'a>> {
        let mut all = split(self.parameters, ';').map(member);
        all.find_map(|(key, value)| (key == name).then_some(value))
    }

    pub(crate) fn integer(&self) -> Option<u64> {
        u64::try_from(self.item.as_ref()?.as_integer()?).ok()
    }

    /// A rate in kbit/s. Some players write fractions.
    pub(crate) fn rate(&self) -> Option<Bitrate> {
        let kbps = self.number().filter(|kbps| (0.0..9e12).contains(kbps))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative, and exact below 2^53"
        )]
        let bits = (kbps * 1e3).round() as u64;
        Some(Bitrate::from_bits_per_second(bits))
    }

    /// A finite number. Players may write more decimals than the three that RFC 9651 allows.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match &self.item {
            Some(BareItemFromInput::Integer(integer)) => i64::from(*integer) as f64,
            Some(BareItemFromInput::Decimal(decimal)) => f64::from(*decimal),
            Some(_) => return None,
            None => self.text.parse().ok()?,
        };
        number.is_finite().then_some(number)
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.item.as_ref()?.as_token().map(TokenRef::as_str)
    }

    /// A boolean. Players may also write it as a word.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.token() {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => self.item.as_ref()?.as_boolean(),
        }
    }

    /// A string. Players may leave out its quotes.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.item {
            Some(BareItemFromInput::String(text)) => Some(text.as_str()),
            Some(BareItemFromInput::Boolean(_)) => None,
            None if self.text.starts_with('"') => None,
            _ => Some(self.text).filter(|text| !text.is_empty()),
        }
    }
}

/// The written form of a value.
pub(crate) fn write<'a>(value: impl Into<RefBareItem<'a>>) -> String {
    ItemSerializer::new().bare_item(value).finish()
}

/// The written form of a string. Characters that a string cannot contain are left out.
pub(crate) fn write_text(text: &str) -> String {
    let ascii: String = text.chars().filter(|it| (' '..='~').contains(it)).collect();
    StringRef::from_str(&ascii).map_or_else(|_| String::new(), write)
}

/// The written form of an integer; `None` above the 15 digits that RFC 9651 allows.
pub(crate) fn write_integer(number: u64) -> Option<String> {
    sfv::Integer::try_from(number).ok().map(write)
}

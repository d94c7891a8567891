//! [`group`]: fields that a row has either all together or not at all.

use std::fmt;

use serde::de::value::{Error as ProbeError, MapAccessDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

/// Reads a flattened group of fields for `#[serde(flatten, deserialize_with = "group")]`: `None` if the row has none of
/// them. A plain `#[serde(flatten)]` of an `Option` also gives `None` if the group exists but one field is missing,
/// which silently loses all its numbers.
///
/// # Errors
/// Names the field if the row has some fields of the group but lacks a required one, or one has the wrong type.
pub(super) fn group<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let mut names = FieldNames::default();
    // The probe always fails.
    let _ = T::deserialize(&mut names);
    let fields = from.deserialize_struct("group", names.0, FieldsVisitor)?;
    if fields.is_empty() {
        return Ok(None);
    }
    serde_json::from_value(fields.into())
        .map(Some)
        .map_err(D::Error::custom)
}

/// A deserializer that records the names of a struct's fields and reads nothing.
#[derive(Default)]
struct FieldNames(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut FieldNames {
    type Error = ProbeError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeError> {
        Err(ProbeError::custom("a group of fields must be a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Reads the fields as JSON.
struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fields of a group")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Map::deserialize(MapAccessDeserializer::new(map))
    }
}

//! [`group`]: fields that a row has either all together or not at all.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// Reads a flattened group of fields for `#[serde(flatten, deserialize_with = "group")]`: `None` if the row has none of
/// them. A plain `#[serde(flatten)]` of an `Option` also gives `None` if the group exists but one field is missing,
/// which silently loses all its numbers.
///
/// # Errors
/// Names the field if the row has some fields of the group but lacks a required one, or one has the wrong type.
pub(super) fn group<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut found = false;
    let read = T::deserialize(Watched {
        inner: from,
        found: &mut found,
    });
    match read {
        Ok(group) => Ok(Some(group)),
        Err(_) if !found => Ok(None),
        Err(error) => Err(error),
    }
}

/// A deserializer, a visitor or a map that records whether it had any field.
struct Watched<'a, T> {
    inner: T,
    found: &'a mut bool,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Watched<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("a group of fields must be a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Watched {
            inner: visitor,
            found: self.found,
        };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Watched<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Watched {
            inner: map,
            found: self.found,
        })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Watched<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let key = self.inner.next_key_seed(seed)?;
        *self.found |= key.is_some();
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

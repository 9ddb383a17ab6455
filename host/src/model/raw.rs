//! A JSON document kept as text, which stands in other JSON as the document that it is, byte for byte.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, ser};
use serde_json::value::RawValue;

/// Fails if the text is no JSON.
pub(super) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_str(text).map_err(ser::Error::custom)?;
    raw.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(|raw| raw.get().to_owned())
}

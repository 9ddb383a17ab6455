//! Reads values out of a row's input.

use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A value of a row's input, and where in the row it stands.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    at: String,
    value: &'a Value,
}

/// A row that is not as its runner expects rows to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    at: String,
    problem: String,
}

impl Malformed {
    pub(crate) fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { at: at.into(), problem: problem.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.at, self.problem)
    }
}

impl core::error::Error for Malformed {}

impl<'a> Input<'a> {
    /// The whole input.
    #[must_use]
    pub fn new(value: &'a Value) -> Self {
        Self { at: "input".to_owned(), value }
    }

    /// The value as it stands.
    #[must_use]
    pub const fn value(&self) -> &'a Value {
        self.value
    }

    /// A fault at this place.
    #[must_use]
    pub fn fault(&self, problem: impl Into<String>) -> Malformed {
        Malformed::new(self.at.clone(), problem)
    }

    /// The field of this object, if it has one; JSON's `null` is a field.
    #[must_use]
    pub fn maybe(&self, name: &str) -> Option<Self> {
        self.value.get(name).map(|value| Self { at: format!("{}.{name}", self.at), value })
    }

    /// The field of this object.
    ///
    /// # Errors
    /// It has none.
    pub fn field(&self, name: &str) -> Result<Self, Malformed> {
        self.maybe(name).ok_or_else(|| Malformed::new(format!("{}.{name}", self.at), "missing"))
    }

    /// The elements of this array.
    ///
    /// # Errors
    /// It is none.
    pub fn elements(&self) -> Result<impl Iterator<Item = Self> + use<'a>, Malformed> {
        let values = self.value.as_array().ok_or_else(|| self.fault("not an array"))?;
        let at = self.at.clone();
        Ok(values.iter().enumerate().map(move |(index, value)| Self { at: format!("{at}[{index}]"), value }))
    }

    /// The fields of this object.
    ///
    /// # Errors
    /// It is none.
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a str, Self)> + use<'a>, Malformed> {
        let fields = self.value.as_object().ok_or_else(|| self.fault("not an object"))?;
        let at = self.at.clone();
        Ok(fields.iter().map(move |(name, value)| (name.as_str(), Self { at: format!("{at}.{name}"), value })))
    }

    /// Text.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(&self) -> Result<&'a str, Malformed> {
        self.value.as_str().ok_or_else(|| self.fault("not a string"))
    }

    /// Text, or none where the row has `null`.
    ///
    /// # Errors
    /// It is something else.
    pub fn optional_text(&self) -> Result<Option<&'a str>, Malformed> {
        if self.value.is_null() { Ok(None) } else { self.text().map(Some) }
    }

    /// A whole number.
    ///
    /// # Errors
    /// It is something else.
    pub fn integer(&self) -> Result<i64, Malformed> {
        self.value.as_i64().ok_or_else(|| self.fault("not a whole number"))
    }

    /// Bytes: a string stands for its UTF-8, `{"b64": "…"}` for anything else.
    ///
    /// # Errors
    /// It is neither.
    pub fn bytes(&self) -> Result<Vec<u8>, Malformed> {
        if let Some(text) = self.value.as_str() {
            return Ok(text.as_bytes().to_vec());
        }
        let encoded = self.field("b64")?;
        STANDARD.decode(encoded.text()?).map_err(|error| encoded.fault(error.to_string()))
    }
}

/// Bytes as rows write them: a string where they are UTF-8, `{"b64": "…"}` otherwise.
#[must_use]
pub fn bytes_value(bytes: &[u8]) -> Value {
    match core::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => serde_json::json!({ "b64": STANDARD.encode(bytes) }),
    }
}

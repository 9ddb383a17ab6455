//! What the runtime vouches for about a record: the metadata token (FORMAT.md, "Metadata").
//!
//! Knows both shapes of a token, of which one is written. A token that is not exactly what its values encode to is none. Must not
//! know whose record it is or who may change it.

use crate::text::json_string;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Kind of speaker, or principal, of which nothing is known.
pub const UNKNOWN: &str = "unknown";

/// Kind of speaker that only a redaction may write.
pub const REDACTED_KIND: &str = "recollex.redacted";

/// Whether evidence may be built on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// Kept, but not to be built on until someone vouches for it.
    Pending,
    /// May be built on.
    Trusted,
}

impl Trust {
    /// `trusted` or `pending`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Trusted => "trusted",
        }
    }

    /// Reads `trusted` or `pending`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "pending" => Some(Self::Pending),
            "trusted" => Some(Self::Trusted),
            _ => None,
        }
    }
}

/// On whose authority a record came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The owner of the workspace.
    Owner,
    /// Someone the owner let in.
    Paired,
}

impl Tier {
    /// `owner` or `paired`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Paired => "paired",
        }
    }

    /// Reads `owner` or `paired`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "owner" => Some(Self::Owner),
            "paired" => Some(Self::Paired),
            _ => None,
        }
    }
}

/// A record's metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metadata {
    /// Whether it may be built on.
    pub trust: Trust,
    /// Kind of speaker; never empty.
    pub kind: String,
    /// On whose behalf; never empty.
    pub principal: String,
    /// On whose authority, if known.
    pub tier: Option<Tier>,
}

impl Metadata {
    /// What holds for a frame without metadata.
    pub fn absent() -> Self {
        Self { trust: Trust::Trusted, kind: UNKNOWN.to_owned(), principal: UNKNOWN.to_owned(), tier: None }
    }

    /// The token a frame carries.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.json())
    }

    /// Reads a token. None unless the token is exactly what one of the two shapes encodes to.
    pub fn decode(token: &str) -> Option<Self> {
        // The decoder takes one encoding of each value only: no padding, no stray bits.
        let json = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let value: Value = serde_json::from_str(&json).ok()?;
        if value.get("origin_scope").is_some() {
            return scoped(&value, &json);
        }
        current(&value).filter(|found| found.json() == json)
    }

    /// The token of a record that somebody has vouched for, from the one that it carries: `trusted`, and otherwise what it
    /// was, its shape included. None unless it is a token. Both words have seven letters, so it keeps its length.
    pub fn vouched(token: &str) -> Option<String> {
        let found = Self::decode(token)?;
        let json = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let mut value: Value = serde_json::from_str(&json).ok()?;
        if value.get("origin_scope").is_none() {
            return Some(Self { trust: Trust::Trusted, ..found }.encode());
        }
        *value.get_mut("trust_state")? = Value::from(Trust::Trusted.as_str());
        let mut json = String::with_capacity(json.len());
        write_canonical(&value, &mut json)?;
        Some(URL_SAFE_NO_PAD.encode(json))
    }

    /// Compact JSON, keys sorted, text unescaped where JSON allows.
    fn json(&self) -> String {
        format!(
            r#"{{"authority_tier":{},"principal_id":{},"speaker_kind":{},"trust_state":"{}","version":1}}"#,
            self.tier.map_or_else(|| "null".to_owned(), |tier| format!("\"{}\"", tier.as_str())),
            json_string(&self.principal),
            json_string(&self.kind),
            self.trust.as_str(),
        )
    }
}

/// The shape that is written. Surplus keys show when the result is encoded again.
fn current(value: &Value) -> Option<Metadata> {
    let text = |key| value.get(key)?.as_str().filter(|text| !text.is_empty());
    let tier = match value.get("authority_tier")? {
        Value::Null => None,
        word => Some(Tier::parse(word.as_str()?)?),
    };
    Some(Metadata {
        trust: Trust::parse(text("trust_state")?)?,
        kind: text("speaker_kind")?.to_owned(),
        principal: text("principal_id")?.to_owned(),
        tier,
    })
}

/// The older shape, read only: a scope of origin in the tier's place, and looser about its values.
fn scoped(value: &Value, json: &str) -> Option<Metadata> {
    const KEYS: [&str; 5] = ["origin_scope", "principal_id", "speaker_kind", "trust_state", "version"];
    let object = value.as_object()?;
    let scope = value.get("origin_scope")?.as_object()?;
    let is_one = |version: &Value| version.as_bool() == Some(true) || version.as_f64() == Some(1.0);
    if object.len() != KEYS.len()
        || !object.contains_key("version")
        || !is_one(value.get("version")?)
        || scope.len() != 2
    {
        return None;
    }
    let mut last = "";
    for capability in scope.get("capabilities")?.as_array()? {
        // Sorted, each once, none empty.
        let name = capability.as_str()?;
        if name <= last {
            return None;
        }
        last = name;
    }
    let tier = match scope.get("origin")?.as_str()? {
        "local-owner" => Some(Tier::Owner),
        "legacy-unknown" => None,
        _ => return None,
    };
    let named = |key: &str| match object.get(key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        nothing if is_nothing(nothing) => Some(UNKNOWN.to_owned()),
        _ => None,
    };
    let found = Metadata {
        trust: Trust::parse(object.get("trust_state")?.as_str()?)?,
        kind: named("speaker_kind")?,
        principal: named("principal_id")?,
        tier,
    };
    let mut again = String::with_capacity(json.len());
    write_canonical(value, &mut again)?;
    (again == json).then_some(found)
}

/// What stands for a value that was not given.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Compact JSON with ascending keys. None if they do not ascend: a parser may keep them in the order they came in, and then
/// they were not written so.
fn write_canonical(value: &Value, out: &mut String) -> Option<()> {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out)?;
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            let mut last: Option<&str> = None;
            for (key, item) in fields {
                if let Some(last) = last {
                    out.push(',');
                    if last >= key.as_str() {
                        return None;
                    }
                }
                last = Some(key);
                out.push_str(&json_string(key));
                out.push(':');
                write_canonical(item, out)?;
            }
            out.push('}');
        }
        Value::String(text) => out.push_str(&json_string(text)),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Null => out.push_str("null"),
    }
    Some(())
}

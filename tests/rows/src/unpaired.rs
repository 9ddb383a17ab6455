//! Rows of `unpaired_archive.jsonl`: what somebody unpaired said, what becomes of it, and the quota.

use std::collections::BTreeMap;

use recollex_core::source::{Batch, Limits};
use recollex_core::trust::{Quota, UnpairedLimits, UnpairedMessage, channel_has_room};
use serde_json::{Map, Value, json};

use crate::{Input, Malformed, Observed, Outcome};

/// Where the quota lies in a workspace.
pub const QUOTA: &str = ".scriptorium/unpaired-archive-quota.json";

/// The arguments of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// As the row has it.
    pub channel: String,
    /// Its `account_id`.
    pub account: String,
    /// Its `chat_id`.
    pub chat: String,
    /// Its `message_id`.
    pub message: String,
    /// Its `user_id`.
    pub user: String,
    /// As the row has it.
    pub user_display: String,
    /// As the row has it, or as it describes it.
    pub text: String,
    /// Its `timestamp`.
    pub time: f64,
}

/// What a row hands in.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The message.
    pub message: Message,
    /// The quota file, if there is one.
    pub quota: Option<String>,
    /// Memory is off.
    pub disabled: bool,
    /// What the clock says, in seconds since 1970.
    pub now: f64,
}

impl Given {
    /// Reads a row.
    ///
    /// # Errors
    /// It has not the shape that these rows have.
    pub fn read(input: &Input<'_>) -> Result<Self, Malformed> {
        let arguments = input.field("args")?;
        let text = |name: &str| Ok::<_, Malformed>(arguments.field(name)?.text()?.to_owned());
        let number = |field: Input<'_>| field.value().as_f64().ok_or_else(|| field.fault("not a number"));
        let now = number(input.field("now")?)?;
        if !input.field("existing_channel_bytes")?.value().is_null() {
            return Err(input.fault("rows with a filled channel come with none of these files"));
        }
        Ok(Self {
            message: Message {
                channel: text("channel")?,
                account: text("account_id")?,
                chat: text("chat_id")?,
                message: text("message_id")?,
                user: text("user_id")?,
                user_display: text("user_display")?,
                text: described(&text("text")?),
                time: number(arguments.field("timestamp")?)?,
            },
            quota: quota(&input.field("quota_file")?, now)?,
            disabled: input.field("disabled")?.value() == &Value::Bool(true),
            now,
        })
    }
}

/// `<65537 x 'x'>` stands for so many of that letter.
fn described(text: &str) -> String {
    let parse = || {
        let (count, letter) = text.strip_prefix('<')?.strip_suffix("'>")?.split_once(" x '")?;
        Some(letter.repeat(count.parse().ok()?))
    };
    parse().unwrap_or_else(|| text.to_owned())
}

/// A quota file as it stands, or described: `600 entries at now-10s`.
fn quota(field: &Input<'_>, now: f64) -> Result<Option<String>, Malformed> {
    let Some(generated) = field.maybe("generated") else {
        return Ok(field.optional_text()?.map(str::to_owned));
    };
    let parse = || {
        let (count, ago) = generated.value().as_str()?.split_once(" entries at now-")?;
        let at = now - ago.strip_suffix('s')?.parse::<f64>().ok()?;
        let entries = vec![at; count.parse().ok()?];
        Some(format!("{}\n", json!({"version": 1, "accepted_at": entries})))
    };
    parse().map(Some).ok_or_else(|| generated.fault("not so many entries at some time"))
}

/// The quota file as rows show it: as it stands, or, where it was described, counted.
#[must_use]
pub fn shown_quota(input: &Input<'_>, file: &str) -> Value {
    let is_described = input.maybe("quota_file").and_then(|quota| quota.maybe("generated")).is_some();
    let times = serde_json::from_str::<Value>(file).ok().and_then(|file| file.get("accepted_at")?.as_array().cloned());
    match times {
        Some(times) if is_described => json!({"count": times.len(), "last": times.last()}),
        _ => file.into(),
    }
}

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let given = Given::read(input)?;
    let mut files = Map::new();
    let before = given.quota.clone();
    let kept = if given.disabled { None } else { keep(given) };
    let result = kept.as_ref().map(|(id, ..)| id.clone()).unwrap_or_default();
    if let Some((_, path, text, quota)) = kept {
        files.insert(path, text.into());
        files.insert(QUOTA.to_owned(), shown_quota(input, &quota));
    } else if let Some(quota) = before {
        files.insert(QUOTA.to_owned(), shown_quota(input, &quota));
    }
    Ok(Outcome::Shown(json!({"result": result, "files": files})))
}

/// The record's id, its archive and what that holds, and the quota; none if the message is refused.
fn keep(given: Given) -> Option<(String, String, String, String)> {
    let limits = UnpairedLimits::default();
    let Message { channel, account, chat, message, user, user_display, text, time } = given.message;
    let bytes = text.len() as u64;
    channel_has_room(&channel, 0, bytes, &limits).ok()?;
    let message = UnpairedMessage { channel, account, chat, message, user, user_display, text, time };
    let batch = Batch::check(vec![message.record(&limits).ok()?], &Limits::default()).ok()?;
    let quota = given.quota.map_or_else(|| Some(Quota::default()), |text| Quota::parse(&text))?;
    let quota = quota.accept(given.now, &limits).ok()?;
    let plan = batch.compare(BTreeMap::new()).ok()?.plan().ok()?;
    let id = plan.records.first()?.id.to_string();
    let change = plan.changes.into_iter().next()?;
    Some((id, change.path, change.text, quota.file()))
}

//! Messages, as Anthropic has them.
//!
//! Knows the documents of `POST {base}/v1/messages`. What the model thought is kept as it came, byte for byte, and goes
//! back in its place: the service refuses a conversation in which it was changed.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::http::{self, KeyHeader, Post};
use super::openai::{named, unreadable};
use super::secret::KeySource;
use super::{
    Attempt, Author, ModelError, ModelErrorKind, ModelInfo, Part, Provider, REPLY_BYTES, Reply, Request, StopReason,
    ToolCall, parsed,
};

/// Where the service is if nobody says anything else.
pub(super) const BASE_URL: &str = "https://api.anthropic.com";
/// The version of the protocol that is spoken here.
const VERSION: &[(&str, &str)] = &[("anthropic-version", "2023-06-01")];
/// The least that a fixed budget for thinking may be.
const BUDGET_MIN: u32 = 1024;

/// The service of messages.
#[derive(Clone)]
pub struct Anthropic {
    /// Up to where `/v1/messages` begins, without a slash behind it.
    pub base_url: String,
    /// The model; none: each request names its own.
    pub model: Option<String>,
    /// Where its key is.
    pub key: KeySource,
    /// Tokens that request and reply may have together, if known.
    pub context: Option<u32>,
    /// Tokens that a reply may have; a request for more gets so many.
    pub max_output: Option<u32>,
    /// How hard it shall think, for models that decide by themselves how long (`output_config.effort`, adaptive thinking).
    pub effort: Option<String>,
    /// Tokens for thinking, for older models, of which this is asked instead: 1,024 and more.
    pub thinking_budget: Option<u32>,
    /// It can call tools.
    pub tools: bool,
    /// Bytes that an answer may have.
    pub reply_bytes: u64,
}

impl Anthropic {
    /// The service at this base URL, without a key. For Anthropic itself: `https://api.anthropic.com`.
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into().trim_end_matches('/').to_owned(),
            model: Some(model.into()),
            key: KeySource::Nowhere,
            context: None,
            max_output: None,
            effort: None,
            thinking_budget: None,
            tools: true,
            reply_bytes: REPLY_BYTES,
        }
    }

    /// With this key.
    #[must_use]
    pub fn key(self, key: KeySource) -> Self {
        Self { key, ..self }
    }
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Anthropic");
        shown.field("base_url", &self.base_url).field("model", &self.model).finish_non_exhaustive()
    }
}

impl Provider for Anthropic {
    fn describe(&self) -> ModelInfo {
        ModelInfo {
            model: self.model.clone(),
            context: self.context,
            max_output: self.max_output,
            tools: self.tools,
            dimensions: None,
        }
    }

    fn complete(&self, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError> {
        let model = named(request.model.as_deref().or(self.model.as_deref()))?;
        let out = Out::new(self, model, request)?;
        let body = serde_json::to_vec(&out)
            .map_err(|error| ModelError::invalid(format!("the request cannot be written: {error}")))?;
        let post = Post {
            url: format!("{}/v1/messages", self.base_url),
            key: &self.key,
            key_header: KeyHeader::ApiKey,
            headers: VERSION,
            body,
            reply_bytes: self.reply_bytes,
            model_insisted: request.model.is_some(),
        };
        read(&http::post(post, attempt)?, model)
    }
}

#[derive(Serialize)]
struct Out<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<MessageOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Serialize)]
struct MessageOut<'a> {
    role: &'static str,
    content: Vec<BlockOut<'a>>,
}

/// A block of ours, or one of theirs as it came.
#[derive(Serialize)]
#[serde(untagged)]
enum BlockOut<'a> {
    Own(Block<'a>),
    Kept(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a RawValue,
    },
}

#[derive(Serialize)]
struct ToolOut<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u32>,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    effort: &'a str,
}

impl<'a> Out<'a> {
    fn new(settings: &'a Anthropic, model: &'a str, request: &'a Request) -> Result<Self, ModelError> {
        let not_json =
            |what: &str, error: &serde_json::Error| ModelError::invalid(format!("{what} is not JSON: {error}"));
        let mut system = Vec::new();
        let mut messages: Vec<MessageOut<'a>> = Vec::new();
        for message in &request.messages {
            let role = match message.author {
                Author::System => {
                    // They stand apart, wherever they were said.
                    system.extend(message.parts.iter().filter_map(|part| match part {
                        Part::Text(text) if !text.is_empty() => Some(Block::Text { text }),
                        _ => None,
                    }));
                    continue;
                }
                Author::User | Author::Tool => "user",
                Author::Assistant => "assistant",
            };
            let mut content = Vec::new();
            for part in &message.parts {
                content.push(match part {
                    // The service takes no empty one.
                    Part::Text(text) if text.is_empty() => continue,
                    Part::Text(text) => BlockOut::Own(Block::Text { text }),
                    Part::Call(ToolCall { id, name, arguments }) => {
                        let input = parsed(arguments).map_err(|error| not_json("a call's arguments", &error))?;
                        BlockOut::Own(Block::ToolUse { id, name, input })
                    }
                    Part::Outcome(outcome) => BlockOut::Own(Block::ToolResult {
                        tool_use_id: &outcome.id,
                        content: &outcome.text,
                        is_error: outcome.is_error,
                    }),
                    Part::Opaque(json) => {
                        let raw = parsed(json).map_err(|error| not_json("an opaque part", &error))?;
                        // One of another provider's has no type.
                        if serde_json::from_str::<Typed<'_>>(json).is_err() {
                            continue;
                        }
                        BlockOut::Kept(raw)
                    }
                });
            }
            // Authors take turns here: what one says in several messages is one.
            match messages.last_mut() {
                _ if content.is_empty() => {}
                Some(last) if last.role == role => last.content.extend(content),
                _ => messages.push(MessageOut { role, content }),
            }
        }
        let tool = |tool: &'a super::Tool| {
            let input_schema = parsed(&tool.schema).map_err(|error| not_json("a tool's schema", &error))?;
            Ok(ToolOut { name: &tool.name, description: &tool.description, input_schema })
        };
        let max_tokens = settings.max_output.map_or(request.max_output, |most| most.min(request.max_output));
        Ok(Self {
            model,
            max_tokens,
            system,
            messages,
            tools: request.tools.iter().map(tool).collect::<Result<_, ModelError>>()?,
            tool_choice: request.must_call.then_some(Choice { r#type: "any" }),
            thinking: if request.must_call { None } else { settings.thinking(max_tokens) },
            output_config: settings.effort.as_deref().map(|effort| OutputConfig { effort }),
        })
    }
}

impl Anthropic {
    /// Whether and how it thinks. A call cannot be insisted on from a model that does: the service refuses both together.
    fn thinking(&self, max_tokens: u32) -> Option<Thinking> {
        match self.thinking_budget {
            // The budget is of the reply's tokens, and something must be left for the reply.
            Some(budget) if budget >= BUDGET_MIN && budget < max_tokens => {
                Some(Thinking { r#type: "enabled", budget_tokens: Some(budget) })
            }
            Some(_) => None,
            None => self.effort.is_some().then_some(Thinking { r#type: "adaptive", budget_tokens: None }),
        }
    }
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct In {
    content: Vec<Box<RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct TextIn {
    text: String,
}

#[derive(Deserialize)]
struct UseIn {
    id: String,
    name: String,
    input: Box<RawValue>,
}

/// A reply of the answer's text.
fn read(text: &str, asked: &str) -> Result<Reply, ModelError> {
    let In { content, stop_reason, usage, model } = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let mut parts = Vec::with_capacity(content.len());
    for block in content {
        let Typed { r#type } = serde_json::from_str(block.get()).map_err(|error| unreadable(&error))?;
        match &*r#type {
            "text" => {
                let TextIn { text } = serde_json::from_str(block.get()).map_err(|error| unreadable(&error))?;
                if !text.is_empty() {
                    parts.push(Part::Text(text));
                }
            }
            "tool_use" => {
                let UseIn { id, name, input } =
                    serde_json::from_str(block.get()).map_err(|error| unreadable(&error))?;
                parts.push(Part::Call(ToolCall { id, name, arguments: input.get().to_owned() }));
            }
            _ => parts.push(Part::Opaque(block.get().to_owned())),
        }
    }
    let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
    let stop = match stop_reason.as_deref() {
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("refusal") => StopReason::Policy,
        _ if has_calls => StopReason::Tools,
        _ => StopReason::Done,
    };
    if stop == StopReason::Policy && !parts.iter().any(|part| !matches!(part, Part::Opaque(_))) {
        return Err(ModelError::new(ModelErrorKind::ContentPolicy, "the model refuses"));
    }
    let tokens = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let tokens_in = usage.as_ref().and_then(|usage| {
        let cached = [usage.cache_creation_input_tokens, usage.cache_read_input_tokens];
        let cached = cached.into_iter().flatten().fold(0_u64, u64::saturating_add);
        usage.input_tokens.map(|count| tokens(count.saturating_add(cached)))
    });
    Ok(Reply {
        parts,
        stop,
        tokens_in,
        tokens_out: usage.and_then(|usage| usage.output_tokens).map(tokens),
        model: model.filter(|model| !model.is_empty()).unwrap_or_else(|| asked.to_owned()),
    })
}

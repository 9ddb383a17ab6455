//! Chat completions, as OpenAI defined them and many servers speak them.
//!
//! Knows the documents of `POST {base}/chat/completions` and `POST {base}/embeddings`. A server is believed nothing: what
//! is not of the shape is `provider`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::http::{self, KeyHeader, Post};
use super::secret::KeySource;
use super::{
    Attempt, Author, EmbeddingRole, Embeddings, Message, ModelError, ModelErrorKind, ModelInfo, Part, Provider,
    REPLY_BYTES, Reply, Request, StopReason, ToolCall, parsed,
};

/// Where the service is if nobody says anything else.
pub(super) const BASE_URL: &str = "https://api.openai.com/v1";
/// Texts in one request for vectors.
const EMBED_TEXTS: usize = 128;
/// Bytes of one number of a vector, in JSON, at most; and what the answer has beside vectors, for each text.
const NUMBER_BYTES: u64 = 32;
/// The longest vector that is taken.
const DIMENSIONS: u64 = 8192;
/// What a server that thinks puts beside its words, and wants back unchanged.
const KEPT: [&str; 2] = ["reasoning_content", "reasoning_details"];

/// A server of chat completions.
#[derive(Clone)]
pub struct OpenAi {
    /// Up to `/v1`, without a slash behind it.
    pub base_url: String,
    /// The model; none: each request names its own.
    pub model: Option<String>,
    /// Where its key is.
    pub key: KeySource,
    /// Tokens that request and reply may have together, if known.
    pub context: Option<u32>,
    /// Tokens that a reply may have; a request for more gets so many.
    pub max_output: Option<u32>,
    /// The field that says how many: `max_completion_tokens` for OpenAI itself, `max_tokens` for many others.
    pub max_output_field: String,
    /// How hard it shall think (`reasoning_effort`), for models that do.
    pub effort: Option<String>,
    /// It can call tools.
    pub tools: bool,
    /// The length of vectors to ask for; none: as the model has them.
    pub dimensions: Option<u32>,
    /// Bytes that an answer may have.
    pub reply_bytes: u64,
}

impl OpenAi {
    /// The server at this base URL, without a key. For OpenAI itself: `https://api.openai.com/v1`.
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        let base_url = base_url.into().trim_end_matches('/').to_owned();
        let is_own = base_url == BASE_URL;
        Self {
            base_url,
            model: Some(model.into()),
            key: KeySource::Nowhere,
            context: None,
            max_output: None,
            max_output_field: if is_own { "max_completion_tokens" } else { "max_tokens" }.to_owned(),
            effort: None,
            tools: true,
            dimensions: None,
            reply_bytes: REPLY_BYTES,
        }
    }

    /// With this key.
    #[must_use]
    pub fn key(self, key: KeySource) -> Self {
        Self { key, ..self }
    }

    fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        reply_bytes: u64,
        model_insisted: bool,
        attempt: &Attempt<'_>,
    ) -> Result<String, ModelError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| ModelError::invalid(format!("the request cannot be written: {error}")))?;
        let url = format!("{}/{path}", self.base_url);
        let key_header = KeyHeader::Bearer;
        http::post(Post { url, key: &self.key, key_header, headers: &[], body, reply_bytes, model_insisted }, attempt)
    }

    fn embed_some(&self, model: &str, texts: &[String], attempt: &Attempt<'_>) -> Result<Embeddings, ModelError> {
        #[derive(Serialize)]
        struct Out<'a> {
            model: &'a str,
            input: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            dimensions: Option<u32>,
        }
        #[derive(Deserialize)]
        struct In {
            data: Vec<Vector>,
            #[serde(default)]
            model: Option<String>,
        }
        #[derive(Deserialize)]
        struct Vector {
            #[serde(default)]
            index: Option<usize>,
            embedding: Vec<f32>,
        }
        let out = Out { model, input: texts, dimensions: self.dimensions };
        let longest = (texts.len() as u64).saturating_mul(DIMENSIONS * NUMBER_BYTES).max(self.reply_bytes);
        let text = self.post("embeddings", &out, longest, false, attempt)?;
        let In { mut data, model: named } = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        // By their numbers, if they have any: the order of a list is nobody's promise.
        if data.iter().all(|vector| vector.index.is_some()) {
            data.sort_by_key(|vector| vector.index);
            if data.iter().enumerate().any(|(place, vector)| vector.index != Some(place)) {
                return Err(ModelError::provider("the vectors' numbers are not those of the texts"));
            }
        }
        let vectors: Vec<_> = data.into_iter().map(|vector| vector.embedding).collect();
        if vectors.len() != texts.len() {
            return Err(ModelError::provider(format!("{} vectors came for {} texts", vectors.len(), texts.len())));
        }
        Ok(Embeddings { model: named.unwrap_or_else(|| model.to_owned()), vectors })
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("base_url", &self.base_url).field("model", &self.model).finish_non_exhaustive()
    }
}

impl Provider for OpenAi {
    fn describe(&self) -> ModelInfo {
        ModelInfo {
            model: self.model.clone(),
            context: self.context,
            max_output: self.max_output,
            tools: self.tools,
            dimensions: self.dimensions,
        }
    }

    fn complete(&self, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError> {
        let model = named(request.model.as_deref().or(self.model.as_deref()))?;
        let out = Out::new(self, model, request)?;
        let text = self.post("chat/completions", &out, self.reply_bytes, request.model.is_some(), attempt)?;
        read(&text, model)
    }

    /// Takes `role` for nothing: these services embed both alike.
    fn embed(&self, texts: &[String], _: EmbeddingRole, attempt: &Attempt<'_>) -> Result<Embeddings, ModelError> {
        let model = named(self.model.as_deref())?;
        let mut all = Embeddings { model: model.to_owned(), vectors: Vec::with_capacity(texts.len()) };
        for some in texts.chunks(EMBED_TEXTS) {
            let Embeddings { model, vectors } = self.embed_some(model, some, attempt)?;
            if !all.vectors.is_empty() && model != all.model {
                return Err(ModelError::provider("vectors of several models came"));
            }
            all.model = model;
            all.vectors.extend(vectors);
        }
        Ok(all)
    }
}

pub(super) fn named(model: Option<&str>) -> Result<&str, ModelError> {
    model.ok_or_else(|| ModelError::unconfigured("no model is named: set `model`"))
}

pub(super) fn unreadable(error: &serde_json::Error) -> ModelError {
    // Where and what, and nothing of the text itself.
    let (line, column) = (error.line(), error.column());
    let what = match error.classify() {
        serde_json::error::Category::Data => "not of the shape that was expected",
        serde_json::error::Category::Eof => "JSON that is cut off",
        _ => "no JSON",
    };
    ModelError::provider(format!("the provider's answer is {what} (line {line}, column {column})"))
}

#[derive(Serialize)]
struct Out<'a> {
    model: &'a str,
    messages: Vec<MessageOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    /// The one field whose name the settings say.
    #[serde(flatten)]
    max_output: BTreeMap<&'a str, u32>,
}

#[derive(Serialize)]
struct MessageOut<'a> {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(flatten)]
    kept: BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize)]
struct CallOut<'a> {
    id: &'a str,
    r#type: &'static str,
    function: FunctionOut<'a>,
}

#[derive(Serialize)]
struct FunctionOut<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct ToolOut<'a> {
    r#type: &'static str,
    function: DeclarationOut<'a>,
}

#[derive(Serialize)]
struct DeclarationOut<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

impl<'a> Out<'a> {
    fn new(settings: &'a OpenAi, model: &'a str, request: &'a Request) -> Result<Self, ModelError> {
        let mut messages = Vec::new();
        for message in &request.messages {
            add(message, &mut messages);
        }
        let tool = |tool: &'a super::Tool| {
            let parameters = parsed(&tool.schema)
                .map_err(|error| ModelError::invalid(format!("the schema of `{}` is not JSON: {error}", tool.name)))?;
            let function = DeclarationOut { name: &tool.name, description: &tool.description, parameters };
            Ok(ToolOut { r#type: "function", function })
        };
        let max_output = settings.max_output.map_or(request.max_output, |most| most.min(request.max_output));
        Ok(Self {
            model,
            messages,
            tools: request.tools.iter().map(tool).collect::<Result<_, ModelError>>()?,
            tool_choice: request.must_call.then_some("required"),
            reasoning_effort: settings.effort.as_deref(),
            max_output: BTreeMap::from([(&*settings.max_output_field, max_output)]),
        })
    }
}

/// A message as this protocol has it: each outcome of a tool is one of its own.
fn add<'a>(message: &'a Message, messages: &mut Vec<MessageOut<'a>>) {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    let mut kept = BTreeMap::new();
    for part in &message.parts {
        match part {
            Part::Text(text) => texts.push(text.as_str()),
            Part::Call(ToolCall { id, name, arguments }) => {
                tool_calls.push(CallOut { id, r#type: "function", function: FunctionOut { name, arguments } });
            }
            Part::Outcome(outcome) => messages.push(MessageOut {
                role: "tool",
                // There is no other place to say it.
                content: Some(if outcome.is_error { format!("Error: {}", outcome.text) } else { outcome.text.clone() }),
                tool_calls: Vec::new(),
                tool_call_id: Some(&outcome.id),
                kept: BTreeMap::new(),
            }),
            // One of another provider's is no object with these names.
            Part::Opaque(json) => {
                let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).unwrap_or_default();
                kept.extend(fields.into_iter().filter(|(name, _)| KEPT.contains(&&**name)));
            }
        }
    }
    if texts.is_empty() && tool_calls.is_empty() && kept.is_empty() {
        return;
    }
    let role = match message.author {
        Author::System => "system",
        Author::User | Author::Tool => "user",
        Author::Assistant => "assistant",
    };
    let content = (!texts.is_empty()).then(|| texts.join("\n\n"));
    messages.push(MessageOut { role, content, tool_calls, tool_call_id: None, kept });
}

#[derive(Deserialize)]
struct In {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Choice {
    message: MessageIn,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct MessageIn {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallIn>>,
    #[serde(default)]
    reasoning_content: Option<Box<RawValue>>,
    #[serde(default)]
    reasoning_details: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct CallIn {
    #[serde(default)]
    id: Option<String>,
    function: FunctionIn,
}

#[derive(Deserialize)]
struct FunctionIn {
    name: String,
    /// Text that is JSON; some servers send the document itself.
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// A reply of the answer's text.
fn read(text: &str, asked: &str) -> Result<Reply, ModelError> {
    let In { choices, usage, model } = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let Some(Choice { message, finish_reason }) = choices.into_iter().next() else {
        return Err(ModelError::provider("the provider's answer holds no reply"));
    };
    if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
        return Err(ModelError::new(ModelErrorKind::ContentPolicy, format!("the model refuses: {refusal}")));
    }
    let mut stop = match finish_reason.as_deref() {
        Some("length") => StopReason::Length,
        Some("content_filter") => StopReason::Policy,
        Some("tool_calls" | "function_call") => StopReason::Tools,
        _ => StopReason::Done,
    };

    let mut parts = Vec::new();
    let kept: BTreeMap<&str, &RawValue> = KEPT
        .into_iter()
        .zip([&message.reasoning_content, &message.reasoning_details])
        .filter_map(|(name, value)| Some((name, &**value.as_ref()?)))
        .collect();
    if !kept.is_empty() {
        let json = serde_json::to_string(&kept).map_err(|error| unreadable(&error))?;
        parts.push(Part::Opaque(json));
    }
    let texts: Vec<String> = match message.content {
        None => Vec::new(),
        Some(Content::Text(text)) => vec![text],
        Some(Content::Parts(parts)) => parts.into_iter().filter_map(|part| part.text).collect(),
    };
    parts.extend(texts.into_iter().filter(|text| !text.is_empty()).map(Part::Text));
    let calls = message.tool_calls.unwrap_or_default();
    let has_calls = !calls.is_empty();
    for (place, call) in calls.into_iter().enumerate() {
        let arguments = arguments(call.function.arguments.as_deref());
        let Some(arguments) = arguments else {
            // The reply was cut in the middle of them.
            if matches!(stop, StopReason::Length | StopReason::Policy) {
                continue;
            }
            let fault = format!("the arguments of the call of `{}` are not JSON", call.function.name);
            return Err(ModelError::provider(fault));
        };
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call-{place}"));
        parts.push(Part::Call(ToolCall { id, name: call.function.name, arguments }));
    }
    stop = match stop {
        StopReason::Done if has_calls => StopReason::Tools,
        StopReason::Tools if !has_calls => StopReason::Done,
        stop => stop,
    };
    if stop == StopReason::Policy && !parts.iter().any(|part| !matches!(part, Part::Opaque(_))) {
        return Err(ModelError::new(ModelErrorKind::ContentPolicy, "the provider's filter kept the reply back"));
    }
    let tokens = |count: Option<u64>| count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    Ok(Reply {
        parts,
        stop,
        tokens_in: tokens(usage.as_ref().and_then(|usage| usage.prompt_tokens)),
        tokens_out: tokens(usage.as_ref().and_then(|usage| usage.completion_tokens)),
        model: model.filter(|model| !model.is_empty()).unwrap_or_else(|| asked.to_owned()),
    })
}

/// A call's arguments as a JSON document; none if they are not one.
fn arguments(raw: Option<&RawValue>) -> Option<String> {
    let Some(raw) = raw else { return Some("{}".to_owned()) };
    let text = match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => text,
        Err(_) => raw.get().to_owned(),
    };
    if text.trim().is_empty() {
        return Some("{}".to_owned());
    }
    parsed(&text).is_ok().then_some(text)
}

//! One JSON document sent over HTTP, one received, and what a status means.
//!
//! Knows HTTP, deadlines and sizes. Must not know what a provider's documents mean, beyond where one says what went wrong.
//! Nothing is followed, repeated or kept: one request, one connection.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Request};
use ureq::tls::{RootCerts, TlsConfig};

use super::secret::{KeySource, Secret};
use super::{Attempt, ModelError, ModelErrorKind, POLL};
use crate::observer::Level;

/// Bytes that the head of an answer has at most.
const HEAD_BYTES: usize = 64 << 10;
/// How long whoever waits gives the connection, beyond the deadline, to say by itself that it was reached.
const GRACE: Duration = Duration::from_millis(250);

/// How a provider wants the key.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyHeader {
    /// `Authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    ApiKey,
}

/// What is sent, and how the answer is bounded.
pub(super) struct Post<'a> {
    pub url: String,
    pub key: &'a KeySource,
    pub key_header: KeyHeader,
    /// More of the head; nothing secret.
    pub headers: &'a [(&'static str, &'static str)],
    pub body: Vec<u8>,
    /// Bytes that the answer's body may have.
    pub reply_bytes: u64,
    /// The caller insisted on a model: that there is none of that name is `unsupported` then.
    pub model_insisted: bool,
}

/// A head and a whole body.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// Sends a document and returns the one that came, as text in which the key stands nowhere.
///
/// # Errors
/// By the status; `transport` where there is none, `provider` for a body that is no text or too long.
pub(super) fn post(post: Post<'_>, attempt: &Attempt<'_>) -> Result<String, ModelError> {
    let key = post.key.read(attempt.observer())?;
    if key.is_some() && is_open(&post.url) {
        let message = format!("the key is sent to {} without encryption: use https", host(&post.url));
        attempt.observer().log(Level::Warn, &message);
    }
    let scrubbed = |text: String| match &key {
        Some(key) => key.scrub(text),
        None => text,
    };
    let place = host(&post.url).to_owned();
    let model_insisted = post.model_insisted;
    let answer = exchange(&post, key.as_ref(), attempt)
        .map_err(|error| ModelError { message: scrubbed(error.message.clone()), ..error })?;
    let is_done = (200..300).contains(&answer.status);
    let text = match String::from_utf8(answer.body) {
        Ok(text) => scrubbed(text),
        Err(_) if is_done => return Err(ModelError::provider(format!("{place} answered something that is no text"))),
        Err(error) => scrubbed(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    };
    if is_done {
        return Ok(text);
    }
    Err(failure(&place, answer.status, retry_after(&answer.headers, SystemTime::now()), &text, model_insisted))
}

/// Does it on a thread of its own, because a connection can wait for longer than anybody wants the answer.
fn exchange(post: &Post<'_>, key: Option<&Secret>, attempt: &Attempt<'_>) -> Result<Answer, ModelError> {
    let fault = |what: &str| ModelError::invalid(format!("no request can be made of this: {what}"));
    let mut request = Request::post(&post.url)
        .header("content-type", "application/json")
        .body(post.body.clone())
        .map_err(|error| fault(&error.to_string()))?;
    for (name, value) in post.headers {
        request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = key {
        let (name, value) = match post.key_header {
            KeyHeader::Bearer => ("authorization", format!("Bearer {}", key.expose())),
            KeyHeader::ApiKey => ("x-api-key", key.expose().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| fault("a key that no header can hold"))?;
        // So that no log of the libraries below shows it.
        value.set_sensitive(true);
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }

    attempt.check()?;
    let agent = agent(attempt.left());
    let (answered, answer) = mpsc::channel();
    thread::Builder::new()
        .name("recollex-model".to_owned())
        .spawn({
            let agent = agent.clone();
            let reply_bytes = post.reply_bytes;
            // If nobody waits any more, nobody misses it.
            move || drop(answered.send(send(&agent, request, reply_bytes)))
        })
        .map_err(|error| ModelError::new(ModelErrorKind::Transport, format!("no thread for the request: {error}")))?;
    loop {
        match answer.recv_timeout(POLL) {
            Ok(outcome) => {
                // What comes after a cancel is its consequence.
                return match attempt.check() {
                    Err(error) if error.kind == ModelErrorKind::Cancelled => Err(error),
                    _ => outcome,
                };
            }
            Err(RecvTimeoutError::Timeout) => {
                let ended = match attempt.check() {
                    Err(error) if error.kind == ModelErrorKind::Timeout => {
                        answer.recv_timeout(GRACE).unwrap_or(Err(error))
                    }
                    Err(error) => Err(error),
                    Ok(()) => continue,
                };
                // Ends what still waits for the other side; a connection that is only being made ends by its own time.
                agent.shutdown();
                return ended;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ModelError::new(ModelErrorKind::Transport, "the request ended without an outcome"));
            }
        }
    }
}

/// A client for one request, which keeps this time in everything that it does.
fn agent(time: Duration) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        // The key is for the host that the settings name, and for no other.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(time))
        .max_response_header_size(HEAD_BYTES)
        .user_agent(concat!("recollex/", env!("CARGO_PKG_VERSION")))
        .accept("application/json")
        .max_idle_connections(0)
        .build()
        .new_agent()
}

fn send(agent: &Agent, request: Request<Vec<u8>>, reply_bytes: u64) -> Result<Answer, ModelError> {
    let response = agent.run(request).map_err(|error| broken(&error))?;
    let (head, mut body) = response.into_parts();
    let too_long = || ModelError::provider(format!("the answer is longer than {reply_bytes} bytes"));
    let body = match body.with_config().limit(reply_bytes).read_to_vec() {
        Ok(body) => body,
        Err(ureq::Error::BodyExceedsLimit(_)) => return Err(too_long()),
        Err(error) => return Err(broken(&error)),
    };
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
}

/// An exchange without an answer.
fn broken(error: &ureq::Error) -> ModelError {
    let transport = |what: String| ModelError::new(ModelErrorKind::Transport, what);
    if let Some(rustls::Error::InvalidCertificate(why)) = of_tls(error) {
        return transport(format!("the provider's certificate is not valid: {why}")).lasting();
    }
    match error {
        ureq::Error::Timeout(_) => ModelError::timeout(),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => ModelError::timeout(),
        ureq::Error::Http(_) | ureq::Error::BadUri(_) | ureq::Error::InvalidProxyUrl => {
            ModelError::invalid(format!("the request cannot be sent: {error}"))
        }
        ureq::Error::RedirectFailed | ureq::Error::TooManyRedirects => {
            ModelError::provider("the provider sends elsewhere; set `base_url` to where it is").lasting()
        }
        ureq::Error::HostNotFound => transport("the provider's host is not known".to_owned()),
        _ => transport(format!("the connection to the provider failed: {error}")),
    }
}

/// What TLS says of it, wherever it stands.
fn of_tls(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// The host and port of a URL, for people.
pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Whether what is sent there can be read on the way: no encryption, and not this machine.
fn is_open(url: &str) -> bool {
    let host = host(url);
    let name = host
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next())
        .unwrap_or_else(|| host.split(':').next().unwrap_or(host));
    let is_here = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    url.starts_with("http://") && !is_here
}

/// What the head says of trying again: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds.max(0.0)).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 0.001)) {
        return Some(wait);
    }
    let text = text("retry-after")?;
    number(text, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(text).ok()?;
        // A date that has passed: at once.
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// What the body of a failure says, as far as it says it where one of the providers does.
#[derive(Debug, Default)]
struct Said {
    code: String,
    message: String,
}

impl Said {
    fn read(body: &str) -> Self {
        let Ok(document) = serde_json::from_str::<Value>(body) else { return Self::default() };
        let error = document.get("error").unwrap_or(&document);
        let text = |names: &[&str]| {
            let found = names.iter().filter_map(|name| error.get(name)).find_map(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let codes = [text(&["code"]), text(&["type"])];
        let message = error.as_str().map_or_else(|| text(&["message", "detail"]), str::to_owned);
        Self { code: codes.join(" ").trim().to_owned(), message }
    }

    fn has(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words.iter().any(|word| self.code.contains(word) || message.contains(word))
    }
}

/// How the providers say that a request is too long,
const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context limit",
    "context window",
    "context size",
    "context_size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "request_too_large",
];
/// that they do not answer such a thing,
const NOT_ALLOWED: &[&str] = &["content_policy", "content_filter", "content policy", "content management policy"];
/// that there is no such model,
const NO_MODEL: &[&str] = &["model_not_found", "model not found", "does not exist", "not_found_error"];
/// and that there is no money left, which waiting does not help.
const NO_MONEY: &[&str] = &["insufficient_quota", "billing", "credit balance"];

/// What a status stands for, with what the body says to it.
fn failure(place: &str, status: u16, retry_after: Option<Duration>, body: &str, model_insisted: bool) -> ModelError {
    use ModelErrorKind::{
        Authentication, Authorization, ContentPolicy, ContextLength, InvalidRequest, Provider, RateLimit, Timeout,
        Unsupported,
    };
    let said = Said::read(body);
    let (kind, lasting) = match status {
        300..=399 => (Provider, true),
        401 => (Authentication, false),
        402 | 403 if said.has(NOT_ALLOWED) => (ContentPolicy, false),
        402 | 403 => (Authorization, false),
        404 if model_insisted && said.has(NO_MODEL) => (Unsupported, false),
        408 => (Timeout, false),
        409 => (Provider, false),
        413 => (ContextLength, false),
        429 => (RateLimit, said.has(NO_MONEY)),
        400..=499 if said.has(TOO_LONG) => (ContextLength, false),
        400..=499 if said.has(NOT_ALLOWED) => (ContentPolicy, false),
        400..=499 => (InvalidRequest, false),
        501 => (Provider, true),
        _ => (Provider, false),
    };
    let words = if (300..=399).contains(&status) {
        "it sends elsewhere, and a key goes nowhere else; set `base_url` to where it is"
    } else {
        &said.message
    };
    let colon = if words.is_empty() { "" } else { ": " };
    let error = ModelError::new(kind, format!("{place} answered {status}{colon}{words}"));
    if lasting { error.lasting() } else { error.after(retry_after) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> (ModelErrorKind, bool) {
        let error = failure("a host", status, Some(Duration::from_secs(1)), body, false);
        assert_eq!(error.retry_after.is_some(), error.retryable, "{error:?}");
        (error.kind, error.retryable)
    }

    #[test]
    fn a_status_is_a_kind() {
        use ModelErrorKind::{
            Authentication, Authorization, ContentPolicy, ContextLength, InvalidRequest, Provider, RateLimit, Timeout,
        };
        for (status, kind, retryable) in [
            (400, InvalidRequest, false),
            (401, Authentication, false),
            (402, Authorization, false),
            (403, Authorization, false),
            (404, InvalidRequest, false),
            (408, Timeout, true),
            (413, ContextLength, false),
            (422, InvalidRequest, false),
            (429, RateLimit, true),
            (500, Provider, true),
            (501, Provider, false),
            (503, Provider, true),
            (529, Provider, true),
            (301, Provider, false),
            (599, Provider, true),
        ] {
            assert_eq!(of(status, ""), (kind, retryable), "{status}");
            assert_eq!(of(status, "<html>\0</html>"), (kind, retryable), "{status}");
        }
        for (status, body, kind) in [
            (400, r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, ContextLength),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}"#,
                ContextLength,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size"}}"#,
                ContextLength,
            ),
            (400, r#"{"error":{"code":"content_filter","message":"x"}}"#, ContentPolicy),
            (400, r#"{"error":"odd"}"#, InvalidRequest),
            (400, r#"{"detail":"Maximum context length is 5"}"#, ContextLength),
        ] {
            assert_eq!(of(status, body).0, kind, "{body}");
        }
        let quota = r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"pay"}}"#;
        assert_eq!(of(429, quota), (RateLimit, false));
        let unknown = r#"{"error":{"code":"model_not_found","message":"no such model"}}"#;
        assert_eq!(failure("h", 404, None, unknown, true).kind, ModelErrorKind::Unsupported);
        assert_eq!(failure("h", 404, None, unknown, false).kind, InvalidRequest);
        let error = failure("h", 500, None, &format!(r#"{{"error":{{"message":"{}\n"}}}}"#, "x".repeat(5000)), false);
        assert!(error.message.chars().count() <= 600 && !error.message.contains('\n'));
    }

    #[test]
    fn when_to_try_again_is_said_in_four_ways() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_470);
        let wait = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            retry_after(&headers, now).map(|wait| wait.as_millis())
        };
        assert_eq!(wait("retry-after", "7"), Some(7000));
        assert_eq!(wait("retry-after", "1.5"), Some(1500));
        assert_eq!(wait("retry-after-ms", "250"), Some(250));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(10_000));
        assert_eq!(wait("retry-after", "Tue, 20 Oct 2015 07:28:00 GMT"), Some(0));
        for odd in ["soon", "", "-1", "NaN", "inf", "1e300"] {
            assert!(wait("retry-after", odd).is_none_or(|wait| wait == 0), "{odd}");
        }
    }

    #[test]
    fn what_others_can_read_is_known() {
        for (url, open) in [
            ("https://api.example/v1", false),
            ("http://api.example/v1", true),
            ("http://127.0.0.1:8080/v1", false),
            ("http://[::1]:8080/v1", false),
            ("http://localhost:1/", false),
            ("http://localhost.example/", true),
            ("http://10.0.0.1/", true),
        ] {
            assert_eq!(is_open(url), open, "{url}");
        }
    }
}

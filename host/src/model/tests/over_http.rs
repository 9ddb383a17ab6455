//! The two protocols against a server that follows a script.

use recollex_test_model::{self as scripted, Received, Server, Step};
use serde_json::json;

use super::*;

const KEY: &str = "sk-never-to-be-seen-0123456789";

fn key() -> KeySource {
    KeySource::Given(Secret::new(KEY).unwrap())
}

fn openai(server: &Server) -> OpenAi {
    OpenAi::new(format!("{}/v1", server.url()), "small").key(key())
}

fn anthropic(server: &Server) -> Anthropic {
    Anthropic::new(server.url(), "claude").key(key())
}

/// Both, before a server of their own with the same steps.
fn each(steps: &[Step], see: impl Fn(&dyn Provider, &Server)) {
    let server = Server::start(steps.to_vec()).unwrap();
    see(&openai(&server), &server);
    let server = Server::start(steps.to_vec()).unwrap();
    see(&anthropic(&server), &server);
}

fn conversation() -> Request {
    let call = |id: &str| {
        Part::Call(ToolCall {
            id: id.to_owned(),
            name: "submit".to_owned(),
            arguments: r#"{"z":1, "a":[ ]}"#.to_owned(),
        })
    };
    let outcome =
        |id: &str, is_error| Part::Outcome(ToolOutcome { id: id.to_owned(), text: format!("of {id}"), is_error });
    let mut request = request();
    request.must_call = true;
    let parts = vec![Part::Text("I will.".to_owned()), call("1"), call("2")];
    request.messages.push(Message { author: Author::Assistant, parts });
    request.messages.push(Message { author: Author::Tool, parts: vec![outcome("1", false), outcome("2", true)] });
    request.messages.push(says(Author::User, "Go on."));
    request
}

#[test]
fn a_conversation_is_written_as_chat_completions() {
    let calls = [("call_9", "submit", json!({"text": "\u{55b7}\u{6cb9}"}))];
    let server = Server::start([scripted::openai::calls(&calls)]).unwrap();
    let provider = OpenAi { effort: Some("low".to_owned()), max_output: Some(500), ..openai(&server) };
    let reply = ask_within(LONG, &provider, &conversation()).unwrap();
    let arguments = json!({"text": "\u{55b7}\u{6cb9}"}).to_string();
    let call = ToolCall { id: "call_9".to_owned(), name: "submit".to_owned(), arguments };
    let expected = Reply {
        parts: vec![Part::Call(call)],
        stop: StopReason::Tools,
        tokens_in: Some(11),
        tokens_out: Some(7),
        model: "scripted-1".to_owned(),
    };
    assert_eq!(reply, expected);

    let received = server.received();
    let [Received { method, path, .. }] = &*received else { panic!("{received:?}") };
    assert_eq!((method.as_str(), path.as_str()), ("POST", scripted::openai::PATH));
    assert_eq!(received[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert!(received[0].header("user-agent").unwrap().starts_with("recollex/"));
    let function = |id: &str| json!({"id": id, "type": "function", "function": {"name": "submit", "arguments": r#"{"z":1, "a":[ ]}"#}});
    let expected = json!({
        "model": "small",
        "max_tokens": 500,
        "tool_choice": "required",
        "reasoning_effort": "low",
        "messages": [
            {"role": "system", "content": "You write."},
            {"role": "user", "content": "Write."},
            {"role": "assistant", "content": "I will.", "tool_calls": [function("1"), function("2")]},
            {"role": "tool", "tool_call_id": "1", "content": "of 1"},
            {"role": "tool", "tool_call_id": "2", "content": "Error: of 2"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [{"type": "function", "function": {
            "name": "submit", "description": "Submits.",
            "parameters": {"type": "object", "properties": {"b": {}, "a": {}}},
        }}],
    });
    assert_eq!(received[0].json(), expected);
    assert!(received[0].body.contains(r#"{"b":{},"a":{}}"#), "a schema goes as it is");
}

#[test]
fn the_service_itself_has_another_name_for_the_longest_reply() {
    assert_eq!(OpenAi::new("https://api.openai.com/v1/", "m").max_output_field, "max_completion_tokens");
    assert_eq!(OpenAi::new("https://other.example/v1", "m").max_output_field, "max_tokens");
}

#[test]
fn a_conversation_is_written_as_messages() {
    let server =
        Server::start([scripted::anthropic::reply(json!([{"type": "text", "text": "Done."}]), "end_turn")]).unwrap();
    let provider = Anthropic { effort: Some("high".to_owned()), ..anthropic(&server) };
    let reply = ask_within(LONG, &provider, &conversation()).unwrap();
    assert_eq!((reply.parts, reply.stop), (vec![Part::Text("Done.".to_owned())], StopReason::Done));
    assert_eq!((reply.tokens_in, reply.tokens_out, &*reply.model), (Some(15), Some(5), "scripted-2"));

    let received = server.received();
    assert_eq!(received[0].path, scripted::anthropic::PATH);
    assert_eq!((received[0].header("x-api-key"), received[0].header("authorization")), (Some(KEY), None));
    assert_eq!(received[0].header("anthropic-version"), Some("2023-06-01"));
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "submit", "input": {"z": 1, "a": []}});
    let expected = json!({
        "model": "claude",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "You write."}],
        "tool_choice": {"type": "any"},
        "output_config": {"effort": "high"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Write."}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I will."}, used("1"), used("2")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "of 1"},
                {"type": "tool_result", "tool_use_id": "2", "content": "of 2", "is_error": true},
                {"type": "text", "text": "Go on."},
            ]},
        ],
        "tools": [{
            "name": "submit", "description": "Submits.",
            "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}},
        }],
    });
    assert_eq!(received[0].json(), expected, "no thinking beside a call that is insisted on");
}

#[test]
fn what_the_model_thought_goes_back_byte_for_byte() {
    // Spaces, order and escapes that a parser would not give back.
    let thought = r#"{ "type":"thinking",  "thinking":"caf\u00e9 \/ 1.0e1", "signature":"EqQB" , "a":1.50 }"#;
    let redacted = r#"{"type":"redacted_thinking","data":"zzz"}"#;
    let used = r#"{"type":"tool_use","id":"toolu_1","name":"submit","input":{"b":1,  "a":2}}"#;
    let answer = format!(
        r#"{{"model":"c","content":[{thought},{redacted},{{"type":"text","text":""}},{used}],"stop_reason":"tool_use","usage":{{}}}}"#
    );
    let steps = [
        Step::text(200, "application/json", answer),
        scripted::anthropic::reply(json!([{"type": "text", "text": "Done."}]), "end_turn"),
    ];
    let server = Server::start(steps).unwrap();
    let provider = Anthropic { effort: Some("high".to_owned()), ..anthropic(&server) };
    let mut request = request();
    let reply = ask_within(LONG, &provider, &request).unwrap();
    let call =
        ToolCall { id: "toolu_1".to_owned(), name: "submit".to_owned(), arguments: r#"{"b":1,  "a":2}"#.to_owned() };
    let opaque = |json: &str| Part::Opaque(json.to_owned());
    assert_eq!(reply.parts, [opaque(thought), opaque(redacted), Part::Call(call)]);
    assert_eq!((reply.stop, reply.tokens_in), (StopReason::Tools, None));

    let mut parts = reply.parts;
    // Of another provider: no concern of this one.
    parts.push(opaque(r#"{"reasoning_content":"other"}"#));
    request.messages.push(Message { author: Author::Assistant, parts });
    let outcome = ToolOutcome { id: "toolu_1".to_owned(), text: "done".to_owned(), is_error: false };
    request.messages.push(Message { author: Author::Tool, parts: vec![Part::Outcome(outcome)] });
    ask_within(LONG, &provider, &request).unwrap();
    let received = server.received();
    assert_eq!(received[0].json()["thinking"], json!({"type": "adaptive"}));
    let body = &received[1].body;
    assert!(body.contains(&format!("[{thought},{redacted},")) && !body.contains("other"), "{body}");
    assert!(body.contains(r#""input":{"b":1,  "a":2}"#), "{body}");
}

#[test]
fn older_models_think_by_a_budget_within_the_reply() {
    let reply = scripted::anthropic::reply(json!([{"type": "text", "text": "x"}]), "end_turn");
    let server = Server::start(vec![reply; 2]).unwrap();
    let provider = Anthropic { thinking_budget: Some(2048), ..anthropic(&server) };
    for max_output in [4000, 2048] {
        ask_within(LONG, &provider, &Request { max_output, ..request() }).unwrap();
    }
    let received = server.received();
    assert_eq!(received[0].json()["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!(received[1].json()["thinking"], json!(null), "nothing would be left for the reply");
}

#[test]
fn servers_that_show_their_thoughts_get_them_back() {
    let message =
        json!({"role": "assistant", "content": "So.", "reasoning_content": "hm", "reasoning_details": [{"a": 1}]});
    let steps = [scripted::openai::reply(message, "stop"), scripted::openai::text("x")];
    let server = Server::start(steps).unwrap();
    let provider = openai(&server);
    let mut request = request();
    let mut parts = ask_within(LONG, &provider, &request).unwrap().parts;
    assert!(matches!(&parts[..], [Part::Opaque(_), Part::Text(_)]), "{parts:?}");
    parts.push(Part::Opaque(r#"{"type":"thinking","role":"system"}"#.to_owned()));
    request.messages.push(Message { author: Author::Assistant, parts });
    request.messages.push(says(Author::User, "More."));
    ask_within(LONG, &provider, &request).unwrap();
    let sent = &server.received()[1].json()["messages"][2];
    let expected =
        json!({"role": "assistant", "content": "So.", "reasoning_content": "hm", "reasoning_details": [{"a": 1}]});
    assert_eq!(*sent, expected);
}

#[test]
fn each_failure_has_its_kind() {
    use ModelErrorKind::{Authentication, Authorization, ContextLength, InvalidRequest, Provider as Failed, RateLimit};
    for (status, code, message, expected, retryable) in [
        (401, "invalid_api_key", "wrong", Authentication, false),
        (403, "permission_error", "no", Authorization, false),
        (400, "invalid_request_error", "odd", InvalidRequest, false),
        (404, "not_found_error", "no such", InvalidRequest, false),
        (422, "", "odd", InvalidRequest, false),
        (400, "context_length_exceeded", "long", ContextLength, false),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ContextLength, false),
        (413, "request_too_large", "long", ContextLength, false),
        (400, "content_filter", "no", ModelErrorKind::ContentPolicy, false),
        (429, "rate_limit_error", "slow", RateLimit, true),
        (429, "insufficient_quota", "pay", RateLimit, false),
        (500, "api_error", "oh", Failed, true),
        (503, "", "", Failed, true),
        (529, "overloaded_error", "busy", Failed, true),
    ] {
        for step in [scripted::openai::error(status, code, message), scripted::anthropic::error(status, code, message)]
        {
            each(&[step.header("retry-after", "7")], |provider, server| {
                let error = ask(provider).unwrap_err();
                assert_eq!((error.kind, error.retryable), (expected, retryable), "{status} {error:?}");
                assert_eq!(error.retry_after, retryable.then_some(Duration::from_secs(7)));
                assert!(error.message.contains(&status.to_string()) && error.message.contains(message), "{error:?}");
                assert_eq!(server.received().len(), 1, "nothing is repeated");
            });
        }
    }
}

#[test]
fn a_model_that_is_not_there_is_unsupported_if_it_was_insisted_on() {
    each(&vec![scripted::openai::error(404, "model_not_found", "no model `huge`"); 2], |provider, server| {
        let mut request = request();
        request.model = Some("huge".to_owned());
        assert_eq!(kind(&ask_within(LONG, provider, &request)), ModelErrorKind::Unsupported);
        assert_eq!(server.received()[0].json()["model"], "huge");
        assert_eq!(kind(&ask(provider)), ModelErrorKind::InvalidRequest);
    });
}

#[test]
fn garbage_is_a_provider_error() {
    let json = |text: &str| Step::text(200, "application/json", text);
    let mut deep = "[".repeat(100_000);
    deep.push_str(&"]".repeat(100_000));
    let call = |arguments: &str| {
        let function = json!({"name": "submit", "arguments": arguments});
        scripted::openai::reply(json!({"role": "assistant", "tool_calls": [{"function": function}]}), "tool_calls")
    };
    let mut steps = vec![
        Step::text(200, "text/html", "<!doctype html><title>Please sign in</title>"),
        json(r#"{"choices":[{"message":{"content":"ab"#),
        json(r#"{"choices":[]}"#),
        json(r#"{"choices":[{"message":"text"}],"content":{"type":"text"}}"#),
        json(r#"{"content":[{"text":"no type"}]}"#),
        json(r#"{"content":[1]}"#),
        json("null"),
        json("[]"),
        json(""),
        json(&deep),
        Step::text(200, "application/json", vec![0xff, 0xfe, 0]),
        Step::text(200, "application/json", vec![b' '; 10 << 20]),
        Step::text(500, "text/html", vec![0xff; 10_000]),
        Step::text(204, "application/json", ""),
    ];
    each(&steps.clone(), |provider, _| {
        for step in &steps {
            let shown: String = format!("{step:?}").chars().take(80).collect();
            let error = ask(provider).unwrap_err();
            assert_eq!((error.kind, error.retryable), (ModelErrorKind::Provider, true), "{shown} {error:?}");
            assert!(error.message.len() < 1000);
        }
    });
    steps = vec![call("{"), call("{} {}"), call("not"), call(""), call("{\"a\":1}")];
    let server = Server::start(steps).unwrap();
    for _ in 0..3 {
        assert_eq!(kind(&ask(&openai(&server))), ModelErrorKind::Provider);
    }
    for arguments in ["{}", "{\"a\":1}"] {
        let call = ToolCall { id: "call-0".to_owned(), name: "submit".to_owned(), arguments: arguments.to_owned() };
        assert_eq!(ask(&openai(&server)).unwrap().parts, [Part::Call(call)]);
    }
}

#[test]
fn a_connection_that_breaks_is_transport() {
    let steps = [
        Step::Close,
        Step::Cut(br#"{"choices":["#.to_vec()),
        Step::Cut(Vec::new()),
        Step::Raw(b"\x16\x03\x01 what is this?\r\n\r\n".to_vec()),
        Step::Raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec()),
    ];
    each(&steps, |provider, _| {
        for step in &steps {
            let error = ask(provider).unwrap_err();
            assert_eq!((error.kind, error.retryable), (ModelErrorKind::Transport, true), "{step:?} {error:?}");
        }
    });
    let server = Server::start([]).unwrap();
    let provider = openai(&server);
    drop(server);
    assert_eq!(kind(&ask(&provider)), ModelErrorKind::Transport, "nobody listens");
    assert_eq!(kind(&ask(&OpenAi::new("http://", "m"))), ModelErrorKind::InvalidRequest);
}

#[test]
fn a_stall_ends_at_the_deadline_and_so_does_the_connection() {
    for step in [Step::Stall, Step::StallInBody(br#"{"choices":["#.to_vec())] {
        each(&[step], |provider, server| {
            let begun = Instant::now();
            let error = ask_within(Duration::from_millis(400), provider, &request()).unwrap_err();
            assert_eq!((error.kind, error.retryable), (ModelErrorKind::Timeout, true), "{error:?}");
            assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
            assert!(eventually(|| server.left() == 1));
        });
    }
    let server = Server::start([scripted::openai::text("x")]).unwrap();
    assert_eq!(kind(&ask_within(Duration::ZERO, &openai(&server), &request())), ModelErrorKind::Timeout);
    assert!(server.received().is_empty());
}

#[test]
fn a_stall_ends_when_the_call_is_cancelled() {
    for step in [Step::Stall, Step::StallInBody(br#"{"choices":["#.to_vec())] {
        each(&[step], |provider, server| {
            let (outcome, took) = ask_and_cancel(provider);
            assert_eq!(kind(&outcome), ModelErrorKind::Cancelled);
            assert!(took < Duration::from_secs(20), "{took:?}");
            assert!(eventually(|| server.left() + usize::from(server.received().is_empty()) == 1));
        });
    }
}

#[test]
fn nothing_is_sent_where_the_settings_do_not_say() {
    for status in [301, 302, 303, 307, 308] {
        let other = Server::start([scripted::openai::text("here")]).unwrap();
        let step = Step::text(status, "text/plain", "").header("location", &format!("{}/v1/x", other.url()));
        each(&[step], |provider, server| {
            let error = ask(provider).unwrap_err();
            assert_eq!((error.kind, error.retryable), (ModelErrorKind::Provider, false), "{status} {error:?}");
            assert_eq!((server.received().len(), other.received().len()), (1, 0));
        });
    }
}

#[test]
fn a_refusal_is_a_matter_of_policy() {
    let refusals = [
        scripted::openai::reply(json!({"role": "assistant", "content": null, "refusal": "I won't"}), "stop"),
        scripted::openai::reply(json!({"role": "assistant", "content": ""}), "content_filter"),
        scripted::openai::reply(json!({"role": "assistant", "content": "Half"}), "content_filter"),
    ];
    let server = Server::start(refusals).unwrap();
    let provider = openai(&server);
    for _ in 0..2 {
        let error = ask(&provider).unwrap_err();
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::ContentPolicy, false));
    }
    assert_eq!(ask(&provider).unwrap().stop, StopReason::Policy);
    let half = json!([{"type": "text", "text": "Half"}]);
    let server =
        Server::start([scripted::anthropic::reply(json!([]), "refusal"), scripted::anthropic::reply(half, "refusal")])
            .unwrap();
    let provider = anthropic(&server);
    assert_eq!(kind(&ask(&provider)), ModelErrorKind::ContentPolicy);
    assert_eq!(ask(&provider).unwrap().stop, StopReason::Policy);
}

#[test]
fn a_reply_that_was_cut_says_so_and_drops_half_a_call() {
    let function = |arguments: &str| json!({"id": "1", "function": {"name": "submit", "arguments": arguments}});
    let message =
        json!({"content": [{"type": "text", "text": "Well"}], "tool_calls": [function("{}"), function("{\"a")]});
    let server = Server::start([scripted::openai::reply(message, "length")]).unwrap();
    let reply = ask(&openai(&server)).unwrap();
    assert_eq!(reply.stop, StopReason::Length);
    assert!(matches!(&reply.parts[..], [Part::Text(text), Part::Call(_)] if text == "Well"), "{reply:?}");
    let text = json!([{"type": "text", "text": "Half"}]);
    let server = Server::start([scripted::anthropic::reply(text, "max_tokens")]).unwrap();
    assert_eq!(ask(&anthropic(&server)).unwrap().stop, StopReason::Length);
}

#[test]
fn a_key_is_in_the_requests_head_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("exchange.jsonl");
    let text = format!("Your key is {KEY}.");
    let steps = [
        scripted::openai::error(401, "invalid_api_key", &format!("Incorrect API key provided: {KEY}")),
        scripted::openai::error(500, "", &text),
        Step::text(200, "text/html", text.clone()),
        scripted::openai::text(&text),
        Step::Raw(text.clone().into_bytes()),
    ];
    for is_openai in [true, false] {
        let server = Server::start(steps.to_vec()).unwrap();
        let inner: Arc<dyn Provider> = if is_openai { Arc::new(openai(&server)) } else { Arc::new(anthropic(&server)) };
        let provider = Recorder::new(inner, &path);
        let lines = Lines::default();
        let mut seen = format!("{:?} {:?} {provider:?}", openai(&server), anthropic(&server));
        for _ in &steps {
            let outcome = provider.complete(&request(), &Attempt::new(LONG, &|| false, &lines));
            seen.push_str(&format!("{outcome:?}"));
        }
        seen.push_str(&lines.all());
        seen.push_str(&fs::read_to_string(&path).unwrap());
        assert!(!seen.contains(KEY) && seen.contains("[key]"), "{seen}");
        assert_eq!(server.received().len(), steps.len());
        assert!(server.received().iter().all(|request| !request.body.contains(KEY) && !request.path.contains(KEY)));
    }
}

#[test]
fn a_key_that_is_missing_shows_when_it_is_needed() {
    let server = Server::start([scripted::openai::text("x")]).unwrap();
    let missing = KeySource::Environment("RECOLLEX_NO_SUCH_VARIABLE".to_owned());
    let provider = openai(&server).key(missing);
    assert_eq!(provider.describe().model.as_deref(), Some("small"));
    assert_eq!(kind(&ask(&provider)), ModelErrorKind::Authentication);
    assert!(server.received().is_empty());
    // Without one there is no header.
    ask(&provider.key(KeySource::Nowhere)).unwrap();
    assert_eq!(server.received()[0].header("authorization"), None);
}

#[test]
fn settings_make_providers_and_keys_stay_with_the_services() {
    let settings = |provider, base_url: Option<&str>| RoleSettings {
        provider: Some(provider),
        base_url: base_url.map(str::to_owned),
        model: Some("m".to_owned()),
        ..RoleSettings::default()
    };
    for (kind, name) in [(Kind::Openai, "OPENAI_API_KEY"), (Kind::Anthropic, "ANTHROPIC_API_KEY")] {
        assert_eq!(settings(kind, None).key(), KeySource::Environment(name.to_owned()));
        assert_eq!(settings(kind, Some("http://127.0.0.1:1/v1")).key(), KeySource::Nowhere);
        assert_eq!(settings(kind, None).build().unwrap().describe().model.as_deref(), Some("m"));
        for bad in [
            "",
            "api.example",
            "ftp://x",
            "https://",
            "https://u:p@x/v1",
            "https://x/v1?key=1",
            "https:///v1",
            "https://a b/",
        ] {
            let error = settings(kind, Some(bad)).build().err().unwrap();
            assert_eq!(error.kind, ModelErrorKind::Unconfigured, "{bad}");
            assert!(!error.message.contains("u:p"));
        }
    }
    let server = Server::start([scripted::openai::text("x")]).unwrap();
    let built = settings(Kind::Openai, Some(&format!("{}/v1/", server.url()))).build().unwrap();
    assert_eq!(ask(&*built).unwrap().model, "scripted-1");
    assert_eq!(server.received()[0].path, scripted::openai::PATH);
}

fn vectors(server: &Server, texts: usize) -> Result<Embeddings, ModelError> {
    let roles = Roles { embedding: Some(Arc::new(openai(server))), ..Roles::default() };
    let texts: Vec<String> = (0..texts).map(|number| number.to_string()).collect();
    embed(&roles, &texts, EmbeddingRole::Passage, &Attempt::new(LONG, &|| false, &crate::observer::Silent))
}

#[test]
fn vectors_come_in_the_order_of_the_texts() {
    // Each text is a number; its vector begins with it. They come in reverse.
    let server = Server::answering(|request| {
        let texts = request.json()["input"].as_array().cloned().unwrap_or_default();
        let number = |text: &serde_json::Value| text.as_str().and_then(|text| text.parse::<f32>().ok());
        let mut data: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "embedding": [number(text), 0.5]}))
            .collect();
        data.reverse();
        Step::json(200, &json!({"data": data, "model": "v"}))
    })
    .unwrap();
    let embeddings = vectors(&server, 300).unwrap();
    assert_eq!((embeddings.vectors.len(), &*embeddings.model), (300, "v"));
    assert!(embeddings.vectors.iter().enumerate().all(|(number, vector)| vector[0] == number as f32));
    assert_eq!(server.received().len(), 3);
    assert_eq!(vectors(&server, 0).unwrap().vectors.len(), 0);
    assert_eq!(server.received().len(), 3, "nobody is asked for nothing");
}

#[test]
fn vectors_that_are_not_what_they_must_be_are_a_provider_error() {
    use scripted::openai::vectors as answer;
    let infinite = r#"{"data":[{"embedding":[1e39,0]},{"embedding":[1,0]}],"model":"v"}"#;
    let twice = r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}],"model":"v"}"#;
    for step in [
        answer(&[vec![1.0]]),
        answer(&[vec![1.0], vec![1.0], vec![1.0]]),
        answer(&[vec![1.0], vec![1.0, 2.0]]),
        answer(&[vec![], vec![]]),
        Step::text(200, "application/json", infinite),
        Step::text(200, "application/json", twice),
        Step::text(200, "application/json", "{}"),
    ] {
        let server = Server::start([step.clone()]).unwrap();
        let error = vectors(&server, 2).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Provider, "{step:?} {error:?}");
    }
    let server = Server::start([scripted::openai::error(429, "", "slow")]).unwrap();
    assert_eq!(vectors(&server, 2).unwrap_err().kind, ModelErrorKind::RateLimit);
    let error =
        anthropic(&server).embed(&[], EmbeddingRole::Query, &Attempt::new(LONG, &|| false, &crate::observer::Silent));
    assert_eq!(error.unwrap_err().kind, ModelErrorKind::Unconfigured);
}

/// A certificate for this machine that nobody vouches for, and its key; none where there is no openssl to make them.
fn certificate(directory: &Path) -> Option<()> {
    let arguments = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=recollex-test";
    let made = std::process::Command::new("openssl")
        .args(arguments.split(' '))
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(directory)
        .output()
        .ok()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(())
}

/// Answers requests over TLS with a reply, for as long as the process lives; its port.
fn tls_server(directory: &Path) -> u16 {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let chain = vec![CertificateDer::from_pem_file(directory.join("cert.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut reader = BufReader::new(rustls::StreamOwned::new(connection, stream.unwrap()));
            let mut length = 0;
            let mut line = String::new();
            // A client that does not trust this one goes away here.
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_lowercase();
                length = lower.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
                line.clear();
            }
            if reader.read_exact(&mut vec![0; length]).is_err() || length == 0 {
                continue;
            }
            let body = r#"{"choices":[{"message":{"content":"over TLS"}}]}"#;
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = reader.get_mut().write_all(answer.as_bytes());
            let _ = reader.get_mut().flush();
        }
    });
    port
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that was skipped says so")]
fn a_certificate_that_nobody_vouches_for_is_transport() {
    let directory = tempfile::tempdir().unwrap();
    if certificate(directory.path()).is_none() {
        assert!(std::env::var_os("REQUIRE_HOSTS").is_none_or(|value| value != "1"), "there is no openssl here");
        eprintln!("skipped: there is no openssl here");
        return;
    }
    let url = format!("https://localhost:{}/v1", tls_server(directory.path()));
    let error = ask(&OpenAi::new(&*url, "m").key(key())).unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Transport, false), "{error:?}");
    assert!(error.message.contains("certificate"), "{error:?}");
    // Whoever trusts it gets the reply: another process, because trust is the process's.
    let trusting = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "model::tests::over_http::asks_a_server_that_it_trusts"])
        .env("SSL_CERT_FILE", directory.path().join("cert.pem"))
        .env("RECOLLEX_TEST_URL", &url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&trusting.stdout);
    assert!(trusting.status.success() && said.contains("1 passed"), "{said}");
}

/// The other half of the test above.
#[test]
#[ignore = "run by the test above, with a server"]
fn asks_a_server_that_it_trusts() {
    let url = std::env::var("RECOLLEX_TEST_URL").unwrap();
    assert_eq!(ask(&OpenAi::new(url, "m")).unwrap().parts, [Part::Text("over TLS".to_owned())]);
}

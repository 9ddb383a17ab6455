//! A model's server for tests: real HTTP on 127.0.0.1, and answers by a script.
//!
//! Knows HTTP/1.1 as far as a client of a model speaks it, and the documents of the two protocols ([`openai`],
//! [`anthropic`]). It keeps every request that it got. What a script asks for it does, also what no server should: stalls,
//! cuts in the middle of a body, garbage.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

/// How often a connection that stalls looks whether the other side is still there.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes that a request's body may have.
const BODY_BYTES: u64 = 64 << 20;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Answers.
    Answer {
        /// The status.
        status: u16,
        /// More of the head.
        headers: Vec<(String, String)>,
        /// The body, whose length the head says.
        body: Vec<u8>,
    },
    /// Waits, then does something else.
    After(Duration, Box<Step>),
    /// Says nothing until the client goes away.
    Stall,
    /// Sends the head and this much of the body, then nothing more until the client goes away.
    StallInBody(Vec<u8>),
    /// Says that a body is longer than what comes, and closes the connection.
    Cut(Vec<u8>),
    /// Closes the connection without a word.
    Close,
    /// Sends these bytes, whatever they are, and closes the connection.
    Raw(Vec<u8>),
}

impl Step {
    /// This JSON document, with this status.
    #[must_use]
    pub fn json(status: u16, document: &Value) -> Self {
        Self::text(status, "application/json", document.to_string())
    }

    /// A body of this type, with this status.
    #[must_use]
    pub fn text(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self::Answer { status, headers, body: body.into() }
    }

    /// The same with one more line in the head, where it is an answer.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// `POST`
    pub method: String,
    /// `/v1/chat/completions`
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, as text.
    pub body: String,
}

impl Received {
    /// The first value of this name, which is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

type Script = dyn FnMut(&Received) -> Step + Send;

struct Shared {
    script: Mutex<Box<Script>>,
    received: Mutex<Vec<Received>>,
    /// Connections whose client went away while the server stalled.
    left: AtomicUsize,
    stop: AtomicBool,
}

/// A server on a port of its own. It stops when this is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// One that takes these steps, one a request, in their order. A request behind the last one is answered with 500.
    ///
    /// # Errors
    /// There is no port.
    pub fn start(steps: impl IntoIterator<Item = Step>) -> io::Result<Self> {
        let mut steps = steps.into_iter().collect::<Vec<_>>().into_iter();
        Self::answering(move |_| {
            steps.next().unwrap_or_else(|| Step::json(500, &json!({"error": {"message": "the script is over"}})))
        })
    }

    /// One that asks what to do with each request.
    ///
    /// # Errors
    /// There is no port.
    pub fn answering(script: impl FnMut(&Received) -> Step + Send + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            received: Mutex::default(),
            left: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for stream in listener.incoming() {
                    if shared.stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let shared = Arc::clone(&shared);
                    // A client that breaks the connection is what some tests are about.
                    thread::spawn(move || stream.and_then(|stream| shared.serve(stream)));
                }
            }
        });
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// `http://127.0.0.1:PORT`, without a slash behind it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// How many clients went away while the server kept them waiting.
    #[must_use]
    pub fn left(&self) -> usize {
        self.shared.left.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // So that it looks.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = receive(&stream)? else { return Ok(()) };
        lock(&self.received).push(request.clone());
        let mut step = (lock(&self.script))(&request);
        while let Step::After(wait, next) = step {
            thread::sleep(wait);
            step = *next;
        }
        match step {
            Step::Answer { status, headers, body } => {
                let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()));
                stream.write_all(head.as_bytes())?;
                stream.write_all(&body)?;
            }
            Step::Cut(body) => {
                let length = body.len() + 1000;
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n")?;
                stream.write_all(&body)?;
            }
            Step::StallInBody(body) => {
                let length = body.len() + 1000;
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n")?;
                stream.write_all(&body)?;
                self.wait(&stream)?;
            }
            Step::Stall => self.wait(&stream)?,
            Step::Raw(bytes) => stream.write_all(&bytes)?,
            Step::Close | Step::After(..) => {}
        }
        let _ = stream.shutdown(Shutdown::Write);
        // A connection closed with something unread in it is reset, and the answer may be lost.
        stream.set_read_timeout(Some(LOOK))?;
        let _ = io::copy(&mut stream.take(BODY_BYTES), &mut io::sink());
        Ok(())
    }

    /// Until the client goes away or the server stops.
    fn wait(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        while !self.stop.load(Ordering::SeqCst) {
            match stream.read(&mut [0]) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Ok(1) => {}
                _ => {
                    self.left.fetch_add(1, Ordering::SeqCst);
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Reads a request; none if the client only connected.
fn receive(stream: &TcpStream) -> io::Result<Option<Received>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = String::new();
    reader.take(length.unwrap_or(0_u64).min(BODY_BYTES)).read_to_string(&mut body)?;
    Ok(Some(Received { method, path, headers, body }))
}

/// Chat completions.
pub mod openai {
    use super::{Step, Value, json};

    /// Where they are asked for.
    pub const PATH: &str = "/v1/chat/completions";

    /// A reply of words.
    #[must_use]
    pub fn text(words: &str) -> Step {
        reply(json!({"role": "assistant", "content": words}), "stop")
    }

    /// A reply that calls tools: id, name, arguments.
    #[must_use]
    pub fn calls(calls: &[(&str, &str, Value)]) -> Step {
        let calls: Vec<Value> = calls
            .iter()
            .map(|(id, name, arguments)| {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
            })
            .collect();
        reply(json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    }

    /// A reply of this message.
    #[must_use]
    pub fn reply(message: Value, finish_reason: &str) -> Step {
        Step::json(
            200,
            &json!({
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1_800_000_000,
                "model": "scripted-1",
                "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
            }),
        )
    }

    /// A failure.
    #[must_use]
    pub fn error(status: u16, code: &str, message: &str) -> Step {
        Step::json(status, &json!({"error": {"message": message, "type": "error", "param": null, "code": code}}))
    }

    /// Vectors, in the order of the texts.
    #[must_use]
    pub fn vectors(vectors: &[Vec<f32>]) -> Step {
        let data: Vec<Value> = vectors
            .iter()
            .enumerate()
            .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
            .collect();
        Step::json(200, &json!({"object": "list", "data": data, "model": "scripted-vectors", "usage": {}}))
    }
}

/// Messages.
pub mod anthropic {
    use super::{Step, Value, json};

    /// Where they are asked for.
    pub const PATH: &str = "/v1/messages";

    /// A reply of these blocks.
    #[must_use]
    pub fn reply(content: Value, stop_reason: &str) -> Step {
        Step::json(
            200,
            &json!({
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "scripted-2",
                "content": content,
                "stop_reason": stop_reason,
                "stop_sequence": null,
                "usage": {"input_tokens": 13, "cache_read_input_tokens": 2, "output_tokens": 5},
            }),
        )
    }

    /// A failure.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Step {
        Step::json(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
    }
}

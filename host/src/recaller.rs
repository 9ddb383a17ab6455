//! Recalling without waiting longer than one wants.
//!
//! A turn of an agent cannot wait for memory as long as memory may take: after a start, or a large import, a first answer takes
//! longer than others. So a session recalls on a thread of its own; who asks waits for so long and then has the number of a
//! request in place of an answer. The answer that comes late is kept until somebody asks for it. Knows waiting; what is recalled
//! is the component's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::bindings::workspace::{RecallQuery, Recollection};
use crate::cancel::Canceller;
use crate::error::Error;
use crate::session::Session;

/// So many requests may be without an answer, and so many late answers are kept; of more the oldest goes.
pub const REQUESTS_MAX: usize = 64;

/// Names a request whose answer comes late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r-{}", self.0)
    }
}

impl std::str::FromStr for RequestId {
    type Err = NoRequestId;

    fn from_str(text: &str) -> Result<Self, NoRequestId> {
        text.strip_prefix("r-").and_then(|number| number.parse().ok()).map(Self).ok_or(NoRequestId)
    }
}

/// A text that names no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request is named r- and a number")]
pub struct NoRequestId;

/// What came of asking.
#[derive(Debug)]
pub enum Recall {
    /// An answer.
    Told(Box<Recollection>),
    /// None yet: ask for the late answer by this.
    Pending(RequestId),
}

/// A session that recalls on a thread of its own. Dropping it ends the call that it is making.
pub struct Recaller {
    questions: Option<mpsc::Sender<(RequestId, RecallQuery)>>,
    desk: Arc<Desk>,
    canceller: Canceller,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Desk {
    requests: Mutex<Requests>,
    answered: Condvar,
}

#[derive(Default)]
struct Requests {
    last: u64,
    open: BTreeSet<RequestId>,
    answers: BTreeMap<RequestId, Result<Recollection, Error>>,
}

impl Desk {
    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recaller {
    /// Takes a session for it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(session: Session) -> io::Result<Self> {
        let canceller = session.canceller();
        let desk = Arc::new(Desk::default());
        let (questions, asked) = mpsc::channel();
        let at = Arc::clone(&desk);
        let thread = thread::Builder::new().name("recall".to_owned()).spawn(move || answer(session, &asked, &at))?;
        Ok(Self { questions: Some(questions), desk, canceller, thread: Some(thread) })
    }

    /// What a turn is told of memory, if that is known within so long.
    ///
    /// # Errors
    /// Those of [`Session::recall`]; [`Error::Limit`] with `recall-requests` if too many requests are without an answer.
    pub fn recall(&self, query: RecallQuery, wait: Duration) -> Result<Recall, Error> {
        let id = {
            let mut requests = self.desk.requests();
            if requests.open.len() >= REQUESTS_MAX {
                return Err(Error::Limit { name: "recall-requests", allowed: REQUESTS_MAX as u64, unit: "requests" });
            }
            requests.last += 1;
            let id = RequestId(requests.last);
            requests.open.insert(id);
            id
        };
        if self.questions.as_ref().is_none_or(|questions| questions.send((id, query)).is_err()) {
            self.desk.requests().open.remove(&id);
            return Err(Error::Gone);
        }
        self.wait(id, wait)
    }

    /// The answer to an earlier request, if it is known within so long. It is told once. None: there is no such request, or its
    /// answer was told, or was too old to be kept.
    ///
    /// # Errors
    /// Those of the request.
    pub fn late(&self, id: RequestId, wait: Duration) -> Result<Option<Recall>, Error> {
        let is_known = {
            let requests = self.desk.requests();
            requests.open.contains(&id) || requests.answers.contains_key(&id)
        };
        if is_known { self.wait(id, wait).map(Some) } else { Ok(None) }
    }

    fn wait(&self, id: RequestId, wait: Duration) -> Result<Recall, Error> {
        let end = Instant::now().checked_add(wait);
        let mut requests = self.desk.requests();
        loop {
            if let Some(answer) = requests.answers.remove(&id) {
                return answer.map(|recollection| Recall::Told(Box::new(recollection)));
            }
            if !requests.open.contains(&id) {
                return Err(Error::Gone);
            }
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => wait,
            };
            if left.is_zero() {
                return Ok(Recall::Pending(id));
            }
            requests = self.desk.answered.wait_timeout(requests, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Recaller {
    fn drop(&mut self) {
        drop(self.questions.take());
        if let Some(thread) = self.thread.take() {
            // A call that begins just now is met the next time round.
            while !thread.is_finished() {
                self.canceller.cancel();
                thread::sleep(Duration::from_millis(5));
            }
            // A panic of that thread has ended its requests with `Gone`, and there is nobody to tell here.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for Recaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recaller").finish_non_exhaustive()
    }
}

/// Ends what is still open when the thread ends, also by a panic.
struct Closing<'d>(&'d Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.requests().open.clear();
        self.0.answered.notify_all();
    }
}

fn answer(mut session: Session, asked: &mpsc::Receiver<(RequestId, RecallQuery)>, desk: &Desk) {
    let _closing = Closing(desk);
    for (id, query) in asked {
        let answer = session.recall(&query);
        let mut requests = desk.requests();
        requests.open.remove(&id);
        requests.answers.insert(id, answer);
        while requests.answers.len() > REQUESTS_MAX {
            requests.answers.pop_first();
        }
        desk.answered.notify_all();
    }
}

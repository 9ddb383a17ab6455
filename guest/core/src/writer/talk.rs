//! The conversation with the model, kept within what may be sent.

use super::model::{Message, Part};

/// What stands in the place of an answer that was left out.
const LEFT_OUT: &str = "(Left out to make room. Ask again if you need it.)";

/// The messages so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Talk {
    messages: Vec<Message>,
}

impl Talk {
    pub(super) fn new(messages: Vec<Message>) -> Self {
        Self { messages }
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(super) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.messages.iter().map(Message::bytes).sum()
    }

    /// Leaves answers of tools out, the oldest first and the newest last, until everything fits into so many bytes. Nothing else is left
    /// out: what the model said goes back as it was. Whether it fits.
    pub(super) fn shorten(&mut self, bytes: u64) -> bool {
        let mut over = self.bytes().saturating_sub(bytes);
        let outcomes = self.messages.iter_mut().flat_map(|message| &mut message.parts).filter_map(|part| match part {
            Part::Outcome(outcome) => Some(outcome),
            Part::Text(_) | Part::Call(_) | Part::Opaque(_) => None,
        });
        for outcome in outcomes.filter(|outcome| outcome.text.len() > LEFT_OUT.len()) {
            if over == 0 {
                break;
            }
            over = over.saturating_sub((outcome.text.len() - LEFT_OUT.len()) as u64);
            LEFT_OUT.clone_into(&mut outcome.text);
        }
        over == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Author, ToolOutcome};
    use super::*;

    #[test]
    fn old_answers_go_first_and_nothing_else_does() {
        let outcome = |id: &str, bytes| {
            let outcome = ToolOutcome { id: id.into(), text: "x".repeat(bytes), is_error: false };
            Message { author: Author::Tool, parts: vec![Part::Outcome(outcome)] }
        };
        let said = Message { author: Author::Assistant, parts: vec![Part::Opaque("y".repeat(500))] };
        let mut talk = Talk::new(vec![Message::text(Author::System, "s"), outcome("1", 300), said, outcome("2", 300)]);
        assert_eq!(talk.bytes(), 1103);
        assert!(talk.shorten(1103));
        assert_eq!(talk.bytes(), 1103);
        assert!(talk.shorten(1000));
        let texts: Vec<u64> = talk.messages().iter().map(Message::bytes).collect();
        assert_eq!(texts, [1, 1 + LEFT_OUT.len() as u64, 500, 301]);
        assert!(!talk.shorten(400));
        assert_eq!(talk.messages()[2].bytes(), 500);
    }
}

use super::conversation::Conversation;
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::session::Session;
pub(super) fn write(_c: &Conversation, _o: &wit::WriteOptions) -> Result<wit::Written, wit::Error> {
    Err(super::conversation::out_of_order("no writer yet"))
}
pub(super) fn salvage(_s: &Session, _m: &[wit::Said], _o: Option<String>) -> Result<wit::Salvaged, wit::Error> {
    Err(super::conversation::out_of_order("no writer yet"))
}

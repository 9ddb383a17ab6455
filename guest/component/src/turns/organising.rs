use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
pub(crate) struct Organising;
impl wit::GuestOrganising for Organising {
    fn start(_: SessionBorrow<'_>, _: wit::Upkeep, _: Option<String>) -> Result<wit::Organising, wit::Error> {
        Err(super::conversation::out_of_order("no writer yet"))
    }
    fn step(&self) -> Result<wit::Organised, wit::Error> {
        Err(super::conversation::out_of_order("no writer yet"))
    }
}

use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
pub(crate) struct Backfilling;
impl wit::GuestBackfilling for Backfilling {
    fn start(_: SessionBorrow<'_>, _: Option<String>) -> Result<wit::Backfilling, wit::Error> {
        Err(super::conversation::out_of_order("no writer yet"))
    }
    fn outlook(&self) -> Result<wit::Backfilled, wit::Error> {
        Err(super::conversation::out_of_order("no writer yet"))
    }
    fn step(&self) -> Result<wit::Backfilled, wit::Error> {
        Err(super::conversation::out_of_order("no writer yet"))
    }
}

#![cfg(target_arch = "wasm32")]
wit_bindgen::generate!({ world: "memory", path: "../../wit", generate_all, with: {"wasi:random/random@0.2.12": wasi::random::random, "wasi:clocks/wall-clock@0.2.12": wasi::clocks::wall_clock} });
struct G;
struct S;
struct V;
use exports::recollex::memory::workspace::*;
impl Guest for G {
    type Session = S;
    type Verification = V;
}
impl GuestVerification for V {
    fn step(&self, _: u64) -> Result<Option<Vec<Finding>>, Error> {
        todo!()
    }
    fn report(&self) -> Report {
        todo!()
    }
}
impl GuestSession for S {
    fn open(_: OpenOptions) -> Result<Session, Error> {
        let b = wasi::random::random::get_random_bytes(4);
        let n = wasi::clocks::wall_clock::now();
        recollex::memory::log::write(recollex::memory::log::Level::Info, &format!("{b:?}{}", n.seconds));
        Ok(Session::new(S))
    }
    fn init(&self) -> Result<Initialised, Error> {
        todo!()
    }
    fn status(&self) -> Result<Status, Error> {
        todo!()
    }
    fn archive(&self, _: Vec<Turn>) -> Result<Archived, Error> {
        todo!()
    }
    fn search(&self, _: Query) -> Result<Answer, Error> {
        todo!()
    }
    fn get(&self, _: String, _: Option<u64>, _: u32) -> Result<Excerpt, Error> {
        todo!()
    }
    fn browse(&self, _: String, _: Option<String>, _: u32) -> Result<Listing, Error> {
        todo!()
    }
    fn verify(&self, _: String) -> Result<Verification, Error> {
        todo!()
    }
}
export!(G);

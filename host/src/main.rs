//! The program `recollex`. What it does is in [`cli`]; what it is about, in the library.

#![forbid(unsafe_code)]

#[cfg(windows)]
compile_error!(
    "Recollex does not run on Windows: a workspace is kept safe by `flock` on a file that other programs lock too, by \
     modes 0600 and 0700, and by atomic renames of files that are open. Build it in WSL (Linux) instead; the component \
     itself runs on Windows in any host that supplies its imports."
);

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}

//! `recollex completions` and `recollex man`: what is made from the command line's definitions.

use std::fs;
use std::io;

use clap::CommandFactory;
use clap_complete::Generator;

use super::args::{Cli, Completions, Man};
use super::failure::{Exit, Failure};
use super::output::Output;

/// Writes completions for a shell.
pub fn run(args: &Completions, out: &Output) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.set_bin_name("recollex");
    command.build();
    let mut script = Vec::new();
    args.shell
        .try_generate(&command, &mut script)
        .map_err(|error| Failure::usage("completions", format!("the completions cannot be made: {error}")))?;
    out.bytes(&script);
    Ok(Exit::DONE)
}

/// Writes a manual page, or all of them.
pub fn man(args: &Man, out: &Output) -> Result<Exit, Failure> {
    let pages = pages().map_err(|error| Failure::usage("man", format!("the pages cannot be made: {error}")))?;
    if let Some(directory) = &args.dir {
        fs::create_dir_all(directory).map_err(|error| Failure::io("make the directory", directory, &error))?;
        for (name, page) in pages {
            let path = directory.join(format!("{name}.1"));
            fs::write(&path, page).map_err(|error| Failure::io("write the page", &path, &error))?;
            out.line(&path.display().to_string());
        }
        return Ok(Exit::DONE);
    }
    let name = args.verb.as_ref().map_or_else(|| "recollex".to_owned(), |verb| format!("recollex-{verb}"));
    match pages.into_iter().find(|(page, _)| *page == name) {
        Some((_, page)) => {
            out.bytes(&page);
            Ok(Exit::DONE)
        }
        None => Err(Failure::usage("man", format!("there is no verb `{}`", args.verb.as_deref().unwrap_or_default()))
            .next("see: recollex help")),
    }
}

/// Each page's name and text: the program's, then its verbs'. Building the command names the pages `recollex-VERB`.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = Cli::command();
    command.build();
    let verbs: Vec<clap::Command> =
        command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help").cloned().collect();
    std::iter::once(command)
        .chain(verbs)
        .map(|command| {
            let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
            let mut page = Vec::new();
            let source = concat!("recollex ", env!("CARGO_PKG_VERSION"));
            clap_mangen::Man::new(command).source(source).render(&mut page)?;
            Ok((name, page))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| &**name).collect();
        for name in ["recollex", "recollex-archive", "recollex-search", "recollex-verify"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let (_, archive) = pages.iter().find(|(name, _)| name == "recollex-archive").unwrap();
        let text = String::from_utf8_lossy(archive);
        assert!(text.contains("\\-\\-thread"), "{text}");
    }
}

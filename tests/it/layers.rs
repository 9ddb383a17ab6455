//! The layers of the architecture hold: arrows point down only, and nothing of one machine is in the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use recollex_tests::built;

use crate::support::{tracked_files, walk};

/// Core's modules and how high they stand; a module may name those below it and itself. Among the lowest four, `ids`
/// is made of text and hashes.
const CORE_LAYERS: &[(&str, u8)] = &[
    ("session", 8),
    ("writer", 7),
    ("search", 6),
    ("turns", 6),
    ("update", 6),
    ("prompt", 6),
    ("import", 5),
    ("read", 5),
    ("views", 5),
    ("table", 4),
    ("trust", 3),
    ("source", 2),
    ("topic", 2),
    ("ids", 1),
    ("text", 0),
    ("digest", 0),
    ("time", 0),
];

fn height(module: &str) -> Option<u8> {
    CORE_LAYERS.iter().find(|(name, _)| *name == module).map(|(_, height)| *height)
}

/// Rust source without comments and without the contents of literals, so that a path in them is not taken for a use.
fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            raw_string(rest)
        } else if next == '"' {
            string(rest)
        } else {
            // A quote in a character literal would open a string.
            ["'\"'", "'\\\"'"].iter().find(|literal| rest.starts_with(**literal)).map_or(0, |literal| literal.len())
        };
        if skip == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skip..];
        }
    }
    code
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let here = &text[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn raw_string(text: &str) -> usize {
    let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
    if text.as_bytes().get(1 + hashes) != Some(&b'"') {
        // A raw identifier.
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    text[start..].find(&end).map_or(text.len(), |at| start + at + end.len())
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The module a file of core is, from the crate's root: `source/batch.rs` is `[source, batch]`.
fn module_of(relative: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        relative.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The top-level modules that code in `module` names through `crate::…` or a chain of `super::`.
fn named(module: &[String], code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let word = |text: &str| -> String {
        text.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
    };
    let mut note = |rest: &str| {
        // `crate::{a, b}` names several.
        match rest.strip_prefix('{') {
            Some(group) => {
                let mut depth = 0_i32;
                let mut start = true;
                for (at, character) in group.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        _ if start && !character.is_whitespace() => {
                            found.insert(word(&group[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
            None => drop(found.insert(word(rest))),
        }
    };
    let compact: String =
        code.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ::", "::").replace(":: ", "::");
    for (at, _) in compact.match_indices("crate::") {
        if !compact[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '$') {
            note(&compact[at + "crate::".len()..]);
        }
    }
    // In a test module at the end of a file, `super` is the file's own module.
    let outside_tests = compact.find("#[cfg(test)] mod ").map_or(&*compact, |at| &compact[..at]);
    for (at, _) in outside_tests.match_indices("super::") {
        if compact[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &compact[at..];
        let mut climbed = 0;
        while let Some(below) = rest.strip_prefix("super::") {
            climbed += 1;
            rest = below;
        }
        if climbed == module.len() {
            note(rest);
        }
    }
    found
}

#[test]
fn in_core_arrows_point_down_only() {
    let root = built::repository().join("guest/core/src");
    let mut faults = Vec::new();
    let mut uses = 0;
    walk(&root, &mut |path| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(&root).unwrap();
            let module = module_of(relative);
            if let Some(top) = module.first() {
                let own = height(top).unwrap_or_else(|| panic!("{top} is new in core: give it a place in CORE_LAYERS"));
                for name in named(&module, &code_only(&fs::read_to_string(path).unwrap())) {
                    uses += 1;
                    // What is no module stands in lib.rs, which is above everything.
                    let allowed = name == *top || height(&name).is_some_and(|height| height < own);
                    if !allowed {
                        faults.push(format!("{} names crate::{name}", relative.display()));
                    }
                }
            }
        }
        true
    });
    assert!(faults.is_empty(), "arrows that point up or sideways:\n{}", faults.join("\n"));
    assert!(uses > 5, "found {uses} uses of crate::… in core: this test no longer sees what it should");
}

#[test]
fn the_finder_of_arrows_finds_them() {
    let code = code_only(
        "use crate::{text::{a, b}, digest}; // crate::session\n/* crate::search */ let x = \"crate::search\";\n\
         let q = '\"'; let r = r#\"crate::session\"#; $crate::search::x; crate :: source::y(); super::super::ids::z; super::w;\n\
         #[cfg(test)]\nmod tests { use super::super::session; }",
    );
    let module = ["source".to_owned(), "batch".to_owned()];
    let found = named(&module, &code);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["digest", "ids", "source", "text"]);
}

fn manifest(path: &str) -> toml::Table {
    let path = built::repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).parse().unwrap()
}

/// The crates of every dependency table of a manifest whose name is in `tables`.
fn dependencies(manifest: &toml::Table, tables: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if tables.contains(&&**name) {
            found.extend(
                table
                    .iter()
                    .map(|(key, value)| value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned()),
            );
        } else if name == "target" {
            for target in table.values().filter_map(toml::Value::as_table) {
                found.append(&mut dependencies(target, tables));
            }
        }
    }
    found
}

/// What Cargo.lock says each package depends on, by name; packages of one name are taken together.
fn locked() -> BTreeMap<String, BTreeSet<String>> {
    let lock = manifest("Cargo.lock");
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let below = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
        let below = below.map(|name| name.as_str().unwrap().split(' ').next().unwrap().to_owned());
        graph.entry(package["name"].as_str().unwrap().to_owned()).or_default().extend(below);
    }
    graph
}

/// What is reached from some packages, they included.
fn reached(graph: &BTreeMap<String, BTreeSet<String>>, from: BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = from.into_iter().collect();
    while let Some(name) = open.pop() {
        if found.insert(name.clone()) {
            open.extend(graph.get(&name).into_iter().flatten().cloned());
        }
    }
    found
}

#[test]
fn core_knows_nothing_of_wit_or_the_host() {
    let direct = dependencies(&manifest("guest/core/Cargo.toml"), &["dependencies", "build-dependencies"]);
    assert!(!direct.is_empty(), "core has no dependency at all: this test no longer sees what it should");
    let all = reached(&locked(), direct);
    for forbidden in ["wit-bindgen", "wasi", "wasmtime", "getrandom", "tokio", "recollex", "rustix"] {
        assert!(!all.contains(forbidden), "core depends on {forbidden}");
    }
}

#[test]
fn the_host_knows_the_contract_and_not_core() {
    for path in ["host/Cargo.toml", "host/cwasm/Cargo.toml", "host/guest-build/Cargo.toml"] {
        let tables = ["dependencies", "build-dependencies", "dev-dependencies"];
        let ours = dependencies(&manifest(path), &tables);
        assert!(!ours.contains("recollex-core"), "{path} depends on core");
        let all = reached(&locked(), ours);
        assert!(!all.contains("recollex-core"), "{path} depends on core through another crate");
    }
}

#[test]
fn guests_depend_on_core_and_no_other_crate_of_ours() {
    for path in ["guest/component/Cargo.toml", "guest/verifier/Cargo.toml"] {
        let ours: Vec<String> = dependencies(&manifest(path), &["dependencies"])
            .into_iter()
            .filter(|name| name.starts_with("recollex"))
            .collect();
        assert_eq!(ours, ["recollex-core"], "{path}");
    }
}

#[test]
fn every_crate_of_ours_forbids_unsafe_code_where_it_must() {
    for path in ["guest/core/src/lib.rs", "host/src/lib.rs", "host/src/main.rs"] {
        let source = fs::read_to_string(built::repository().join(path)).unwrap();
        assert!(code_only(&source).contains("#![forbid(unsafe_code)]"), "{path}");
    }
}

#[test]
fn packages_come_from_one_registry_and_no_repository() {
    let lock = manifest("Cargo.lock");
    let packages = lock["package"].as_array().unwrap();
    let sources: BTreeSet<&str> = packages.iter().filter_map(|package| package.get("source")?.as_str()).collect();
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert!(sources.iter().all(|source| source.starts_with("registry+")), "{sources:?}");
}

#[test]
fn nothing_of_one_machine_is_in_the_repository() {
    // Put together here, so that this file does not find itself.
    let homes = ["home", "root", "Users", "work"].map(|name| format!("/{name}/"));
    // Nobody's, in an example.
    let nobody = "/home/me/";
    let registries = ["index-url", "extra-index", "trusted-host", "[registries", "replace-with"].map(str::to_owned);
    let registries =
        [&registries[..], &["artifact".to_owned() + "ory", "nex".to_owned() + "us", "proxy.golang".to_owned()]]
            .concat();
    let mut faults = Vec::new();
    let mut looked_at = 0;
    for path in tracked_files() {
        // Recorded observations are data, not configuration.
        if path.starts_with("tests/vectors") || path == Path::new("tests/it/layers.rs") {
            continue;
        }
        let Ok(text) = fs::read_to_string(built::repository().join(&path)) else { continue };
        looked_at += 1;
        for (number, line) in text.lines().enumerate() {
            let somebodys = line.replace(nobody, "");
            let absolute = homes.iter().any(|home| {
                somebodys.match_indices(home.as_str()).any(|(at, _)| {
                    // In the middle of a longer path (`sources/work/x`, a URL) it names nothing of a machine.
                    !somebodys[..at].ends_with(|before: char| before.is_alphanumeric() || "._-/~>}*".contains(before))
                })
            });
            let registry = registries.iter().any(|word| line.to_lowercase().contains(word.as_str()));
            if absolute || registry {
                faults.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "paths or hosts of one machine:\n{}", faults.join("\n"));
    assert!(looked_at > 20, "looked at {looked_at} files only");
}

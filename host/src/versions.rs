//! Whether a component and this host fit, seen from the component's type, before anything of it runs.
//!
//! Without this look a component of another version would fail deep inside linking, in words about instances and
//! functions. Knows names and versions of interfaces; the rules are those of semantic versioning as the component model
//! applies it: equal up to the first number that is not zero.

use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::error::Error;

/// A world as this host runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub name: &'static str,
    /// The interfaces that a component must export to be of use.
    pub exports: &'static [&'static str],
    /// The interfaces that a component may import.
    pub imports: &'static [&'static str],
}

/// World `memory` of `wit/worlds.wit`.
pub(crate) const MEMORY: World = World {
    name: "memory",
    exports: &["recollex:memory/workspace@0.1.0", "recollex:memory/turns@0.1.0"],
    imports: &[
        "wasi:clocks/wall-clock@0.2.12",
        "wasi:random/random@0.2.12",
        "recollex:memory/lock@0.1.0",
        "recollex:memory/store@0.1.0",
        "recollex:memory/model@0.1.0",
        "recollex:memory/log@0.1.0",
        "recollex:memory/types@0.1.0",
    ],
};

/// World `verifier` of `wit/worlds.wit`. Types are all that it may import.
pub(crate) const VERIFIER: World = World {
    name: "verifier",
    exports: &["recollex:memory/archive-view@0.1.0"],
    imports: &["recollex:memory/types@0.1.0"],
};

impl World {
    /// Compares the component's imports and exports with this world.
    ///
    /// # Errors
    /// [`Error::Version`] with what the component wants or has, and what it should.
    pub fn check(&self, engine: &Engine, component: &Component) -> Result<(), Error> {
        let ty = component.component_type();
        let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
        for wanted in self.exports {
            if exports.iter().any(|name| fits(name, wanted)) {
                continue;
            }
            let close: Vec<&str> = exports.iter().copied().filter(|name| same_interface(name, wanted)).collect();
            let has = if close.is_empty() { exports } else { close };
            let has = if has.is_empty() { "nothing".to_owned() } else { has.join(", ") };
            return Err(Error::Version {
                wanted: format!("exports {has}"),
                offered: format!("runs what exports {wanted}"),
            });
        }
        for (name, item) in ty.imports(engine) {
            if !self.imports.iter().any(|offered| fits(name, offered)) {
                return Err(self.unknown(name, "interface"));
            }
            // Every interface is offered as an instance; in this world none of them may hold more than types.
            if self.name == VERIFIER.name
                && let Some(function) = first_function(engine, &item.ty)
            {
                return Err(self.unknown(&format!("{name} with the function `{function}`"), "function"));
            }
        }
        Ok(())
    }

    fn unknown(&self, wanted: &str, what: &str) -> Error {
        let close: Vec<&str> = self.imports.iter().copied().filter(|offered| same_interface(wanted, offered)).collect();
        let offered = match (&*close, what) {
            ([], _) => format!("offers {}", self.imports.join(", ")),
            (_, "function") => format!("offers no function to the world `{}`", self.name),
            _ => format!("offers {}", close.join(", ")),
        };
        Error::Version { wanted: format!("imports {wanted}"), offered }
    }
}

/// The name of a function that an import holds or is.
fn first_function(engine: &Engine, item: &ComponentItem) -> Option<String> {
    match item {
        ComponentItem::ComponentInstance(instance) => instance
            .exports(engine)
            .find(|(_, export)| !matches!(export.ty, ComponentItem::Type(_)))
            .map(|(name, _)| name.to_owned()),
        ComponentItem::Type(_) => None,
        _ => Some("itself".to_owned()),
    }
}

/// Whether an interface of this name is served by `offered`: the same interface, in a compatible version.
fn fits(name: &str, offered: &str) -> bool {
    match (name.split_once('@'), offered.split_once('@')) {
        (Some((name, version)), Some((offered, offered_version))) => {
            name == offered && track(version).is_some_and(|track| Some(track) == self::track(offered_version))
        }
        _ => name == offered,
    }
}

fn same_interface(name: &str, other: &str) -> bool {
    let interface = |name: &str| name.split(['@', ' ']).next().unwrap_or_default().to_owned();
    interface(name) == interface(other)
}

/// The part of a version that must be equal: `1` of `1.2.3`, `0.1` of `0.1.2`, all of `0.0.3`. None for what is not
/// three numbers, and for pre-releases, which promise nothing.
fn track(version: &str) -> Option<(u64, u64, u64)> {
    let (version, _build) = version.split_once('+').unwrap_or((version, ""));
    let mut numbers = version.split('.').map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    Some(match (major, minor) {
        (0, 0) => (0, 0, patch),
        (0, _) => (0, minor, 0),
        _ => (major, 0, 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fit_by_their_first_number_that_is_not_zero() {
        let fits = |version: &str, offered: &str| fits(&format!("a:b/c@{version}"), &format!("a:b/c@{offered}"));
        assert!(fits("0.1.0", "0.1.0"));
        assert!(fits("0.1.7", "0.1.0"));
        assert!(fits("0.1.0", "0.1.7"));
        assert!(fits("1.2.3", "1.0.0"));
        assert!(fits("0.1.1+build", "0.1.0"));
        assert!(!fits("0.2.0", "0.1.0"));
        assert!(!fits("1.0.0", "0.1.0"));
        assert!(!fits("0.0.1", "0.0.2"));
        assert!(!fits("0.1.0-rc", "0.1.0"));
        assert!(!fits("0.1", "0.1.0"));
        assert!(!super::fits("a:b/c", "a:b/c@0.1.0"));
        assert!(!super::fits("a:b/d@0.1.0", "a:b/c@0.1.0"));
    }

    fn check(world: World, text: &str) -> Result<(), (String, String)> {
        let engine = Engine::default();
        let component = Component::new(&engine, wat::parse_str(text).expect("its text")).expect("a component");
        world.check(&engine, &component).map_err(|error| match error {
            Error::Version { wanted, offered } => (wanted, offered),
            other => panic!("{other:?}"),
        })
    }

    /// A component with these imports that exports empty interfaces of these names.
    fn component(imports: &str, exports: &[&str]) -> String {
        let export = |name: &&str| format!(r#"(export "{name}" (instance $empty))"#);
        let exports: String = exports.iter().map(export).collect();
        format!("(component {imports} (instance $empty) {exports})")
    }

    #[test]
    fn a_component_must_export_what_it_is_for() {
        let offered = || "runs what exports recollex:memory/workspace@0.1.0".to_owned();
        assert_eq!(check(MEMORY, "(component)"), Err(("exports nothing".to_owned(), offered())));
        let turns = "recollex:memory/turns@0.1.0";
        let of = |export: &str| check(MEMORY, &component("", &[turns, export]));
        assert_eq!(of("other:thing/here@0.1.0"), Err((format!("exports {turns}, other:thing/here@0.1.0"), offered())));
        let other = "recollex:memory/workspace@0.2.0";
        assert_eq!(of(other), Err((format!("exports {other}"), offered())));
        assert_eq!(of("recollex:memory/workspace@0.1.0"), Ok(()));
        assert_eq!(of("recollex:memory/workspace@0.1.9"), Ok(()));
        let workspace = "recollex:memory/workspace@0.1.0";
        let without = check(MEMORY, &component("", &[workspace]));
        assert_eq!(without, Err((format!("exports {workspace}"), format!("runs what exports {turns}"))));
    }

    #[test]
    fn a_component_may_import_only_what_there_is() {
        let of = |import: &str| {
            let import = format!(r#"(import "{import}" (instance (export "f" (func))))"#);
            check(MEMORY, &component(&import, MEMORY.exports))
        };
        assert_eq!(of("recollex:memory/store@0.1.0"), Ok(()));
        assert_eq!(of("recollex:memory/store@0.1.4"), Ok(()));
        assert_eq!(of("wasi:random/random@0.2.0"), Ok(()));
        assert_eq!(
            of("recollex:memory/store@0.2.0"),
            Err(("imports recollex:memory/store@0.2.0".to_owned(), "offers recollex:memory/store@0.1.0".to_owned()))
        );
        let (wanted, offered) = of("wasi:filesystem/types@0.2.12").expect_err("there is none");
        assert_eq!(wanted, "imports wasi:filesystem/types@0.2.12");
        assert!(offered.contains("recollex:memory/store@0.1.0"), "{offered}");
    }

    #[test]
    fn a_verifier_may_import_types_and_nothing_that_can_be_called() {
        let of = |item: &str| {
            let import = format!(r#"(import "recollex:memory/types@0.1.0" (instance {item}))"#);
            check(VERIFIER, &component(&import, VERIFIER.exports))
        };
        assert_eq!(of(""), Ok(()));
        assert_eq!(of(r#"(type $tier (enum "owner" "paired")) (export "tier" (type (eq $tier)))"#), Ok(()));
        let (wanted, offered) = of(r#"(export "now" (func))"#).expect_err("a function");
        assert!(wanted.contains("`now`") && offered.contains("no function"), "{wanted}; {offered}");
        let import = r#"(import "recollex:memory/log@0.1.0" (instance (export "write" (func))))"#;
        let (wanted, _) = check(VERIFIER, &component(import, VERIFIER.exports)).expect_err("another interface");
        assert_eq!(wanted, "imports recollex:memory/log@0.1.0");
    }

    /// The lists above against the contract itself.
    #[test]
    fn worlds_are_those_of_the_contract() {
        let worlds = include_str!("../../wit/worlds.wit");
        let version = worlds.split(['@', ';']).nth(1).expect("`package recollex:memory@VERSION;`");
        let body = |name: &str| {
            let start = worlds.find(&format!("world {name} {{")).expect("the world");
            let rest = worlds.get(start..).unwrap_or_default();
            rest.get(..rest.find('}').expect("its end")).unwrap_or_default().to_owned()
        };
        let listed = |body: &str, keyword: &str| -> Vec<String> {
            body.lines()
                .filter_map(|line| line.trim().strip_prefix(keyword)?.trim().strip_suffix(';'))
                .map(
                    |name| {
                        if name.contains('@') { name.to_owned() } else { format!("recollex:memory/{name}@{version}") }
                    },
                )
                .collect()
        };
        for world in [MEMORY, VERIFIER] {
            let body = body(world.name);
            assert_eq!(listed(&body, "export"), world.exports);
            let mut imports = listed(&body, "import");
            // Comes with every interface that uses it.
            imports.push(format!("recollex:memory/types@{version}"));
            assert_eq!(imports, world.imports);
        }
    }
}

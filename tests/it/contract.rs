//! The contract in `wit/` is documented, frozen where it must be, and what the built components really have.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use recollex::types::Tier;
use recollex::{Error, OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_tests::built;
use wasmtime::component::{Component, Linker, Val};
use wasmtime::{Engine, Store};
use wit_component::{ComponentEncoder, DecodedWasm, Output as _, StringEncoding, WitPrinter};
use wit_parser::{Docs, LiftLowerAbi, ManglingAndAbi, Resolve, Stability, WorldId, WorldItem, WorldKey};

use crate::support::{contract, parse};

/// Frozen since 0.1.0: one more or one changed function here, and no host written before can instantiate the component.
const FROZEN: [&str; 4] = ["lock", "store", "model", "log"];

fn component(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn decode(path: &Path) -> (Resolve, WorldId) {
    match wit_component::decode(&component(path)).unwrap() {
        DecodedWasm::Component(resolve, world) => (resolve, world),
        DecodedWasm::WitPackage(..) => panic!("{} is a WIT package", path.display()),
    }
}

fn world(resolve: &Resolve, package: wit_parser::PackageId, name: &str) -> WorldId {
    resolve.select_world(&[package], Some(name)).unwrap()
}

/// Names of imports or exports and, for interfaces, of their functions.
fn functions(resolve: &Resolve, items: &wit_parser::IndexMap<WorldKey, WorldItem>) -> BTreeMap<String, Vec<String>> {
    items
        .iter()
        .map(|(key, item)| {
            let functions = match item {
                WorldItem::Interface { id, .. } => resolve.interfaces[*id].functions.keys().cloned().collect(),
                WorldItem::Function(function) => vec![function.name.clone()],
                WorldItem::Type { .. } => Vec::new(),
            };
            (resolve.name_world_key(key), functions)
        })
        .collect()
}

#[test]
fn built_imports_are_a_subset_of_the_world() {
    let (resolve, package) = contract();
    for (path, name) in [(built::memory(), "memory"), (built::verifier(), "verifier")] {
        let world = world(&resolve, package, name);
        let offered = functions(&resolve, &resolve.worlds[world].imports);
        let (found, found_world) = decode(path);
        for (import, used) in functions(&found, &found.worlds[found_world].imports) {
            let known =
                offered.get(&import).unwrap_or_else(|| panic!("{name} imports {import}, which its world lacks"));
            for function in used {
                assert!(known.contains(&function), "{name} imports {import}.{function}, which its world lacks");
            }
        }
        // And the types fit, in both directions: what it imports is offered, what is expected it exports.
        wit_component::targets(&resolve, world, &component(path), false)
            .unwrap_or_else(|error| panic!("{name} is no component of its world: {error:#}"));
    }
}

#[test]
fn built_exports_are_the_worlds() {
    let (resolve, package) = contract();
    for (path, name) in [(built::memory(), "memory"), (built::verifier(), "verifier")] {
        let promised = functions(&resolve, &resolve.worlds[world(&resolve, package, name)].exports);
        let (found, found_world) = decode(path);
        assert_eq!(functions(&found, &found.worlds[found_world].exports), promised, "{name}");
    }
}

#[test]
fn the_verifier_imports_no_function_and_runs_with_an_empty_linker() {
    let (found, found_world) = decode(built::verifier());
    for (import, used) in functions(&found, &found.worlds[found_world].imports) {
        assert!(used.is_empty(), "the verifier imports {import}: {used:?}");
    }

    let engine = Engine::default();
    let compiled = Component::from_file(&engine, built::verifier()).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate(&mut store, &compiled).unwrap();
    let (_, interface) = instance.get_export(&mut store, None, "recollex:memory/archive-view@0.1.0").unwrap();
    let mut call = |name: &str, arguments: &[Val], results: usize| {
        let (_, index) = instance.get_export(&mut store, Some(&interface), name).unwrap();
        let function = instance.get_func(&mut store, index).unwrap();
        let mut answer = vec![Val::Bool(false); results];
        function.call(&mut store, arguments, &mut answer).unwrap();
        answer
    };
    let opened = call("[static]archive.open", &[Val::Enum("named".to_owned()), Val::List(Vec::new())], 1).remove(0);
    let Val::Result(Ok(Some(archive))) = opened else { panic!("{opened:?}") };
    let archive = *archive;
    let pushed = call(
        "[method]archive.push-text",
        &[
            archive.clone(),
            Val::String("sources/p/_v2/t.md".to_owned()),
            Val::String("<!-- openprogram-source-archive:v2 -->\n\n".to_owned()),
            Val::Bool(true),
        ],
        1,
    );
    assert!(matches!(&pushed[..], [Val::Result(Ok(_))]), "{pushed:?}");
    let summary = call("[method]archive.summary", &[archive], 1);
    let [Val::Record(fields)] = &summary[..] else { panic!("{summary:?}") };
    assert!(fields.contains(&("ok".to_owned(), Val::Bool(true))), "{fields:?}");
}

#[test]
fn the_verifier_is_small_enough_for_a_page() {
    let size = fs::metadata(built::verifier()).unwrap().len();
    assert!(
        size < 250_000,
        "{size} bytes: look for code that is there more than once, for sorting, and for removing from maps"
    );
}

#[test]
fn import_interfaces_are_frozen() {
    let (resolve, package) = contract();
    for name in FROZEN {
        let id = resolve.packages[package].interfaces[name];
        let mut printer = WitPrinter::default();
        printer.emit_docs(false);
        printer.print_interface_outer(&resolve, id, name).unwrap();
        printer.output.indent_start();
        printer.print_interface(&resolve, id).unwrap();
        printer.output.indent_end();
        let now = String::from(printer.output);
        let golden = built::repository().join(format!("tests/it/golden/{name}.wit"));
        let frozen = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            now == frozen,
            "The import interface `{name}` is not what it was.\n\
             It is frozen since 0.1.0: a host written for it gives the component exactly these functions and types, and \
             with one more or a changed one it no longer instantiates it. What a session must know of its surroundings \
             comes as an option of `open`; what the component can do more goes into an export.\n\
             Only where no release carries the interface yet: write the text below to {}.\n\n{now}",
            golden.display()
        );
    }
}

#[test]
fn every_item_has_documentation_and_says_since_when() {
    let (resolve, package) = contract();
    let mut missing = Vec::new();
    let mut check = |what: String, docs: &Docs, stability: &Stability| {
        if docs.contents.as_ref().is_none_or(|text| text.trim().is_empty()) {
            missing.push(format!("{what}: no documentation"));
        }
        if !matches!(stability, Stability::Stable { .. }) {
            missing.push(format!("{what}: no @since"));
        }
    };
    let package = &resolve.packages[package];
    for (name, id) in &package.interfaces {
        let interface = &resolve.interfaces[*id];
        check(name.clone(), &interface.docs, &interface.stability);
        for (type_name, id) in &interface.types {
            let definition = &resolve.types[*id];
            // A `use` makes an alias here; what it names is documented where it is defined.
            if !matches!(definition.kind, wit_parser::TypeDefKind::Type(wit_parser::Type::Id(_))) {
                check(format!("{name}.{type_name}"), &definition.docs, &definition.stability);
            }
        }
        for function in interface.functions.values() {
            check(format!("{name}.{}", function.name), &function.docs, &function.stability);
        }
    }
    for (name, id) in &package.worlds {
        let world = &resolve.worlds[*id];
        check(format!("world {name}"), &world.docs, &world.stability);
        for (key, item) in world.imports.iter().chain(&world.exports) {
            // An interface is documented where it is defined; that it is part of the world has its own version. Those
            // that come only because another one uses their types are not written in the world.
            let written = !matches!(item.stability(&resolve), Stability::Unknown);
            assert!(
                written || resolve.name_world_key(key).contains("/types@"),
                "world {name}: {} has no @since",
                resolve.name_world_key(key)
            );
        }
    }
    assert!(missing.is_empty(), "{} faults in wit/:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn everything_of_the_contract_carries_its_version() {
    let (resolve, package) = contract();
    let version = resolve.packages[package].name.version.as_ref().unwrap().to_string();
    assert_eq!(version, env!("CARGO_PKG_VERSION"), "the contract and the crates are released together");
    for path in [built::memory(), built::verifier()] {
        let (found, world) = decode(path);
        let world = &found.worlds[world];
        for name in functions(&found, &world.imports).into_keys().chain(functions(&found, &world.exports).into_keys()) {
            let (interface, of) = name.split_once('@').unwrap_or_else(|| panic!("{name} has no version"));
            if interface.starts_with("recollex:memory/") {
                assert_eq!(of, version, "{name}");
            }
        }
    }
}

/// A component that other sources of the contract would give: each call of it traps, but it links or does not.
struct Sketch {
    directory: tempfile::TempDir,
}

impl Sketch {
    /// The contract with a text replaced in one file.
    fn with(file: &str, text: &str, replacement: &str) -> Self {
        let sketch = Self { directory: tempfile::tempdir().unwrap() };
        sketch.copy(&built::repository().join("wit"), &sketch.wit());
        sketch.replace(file, text, replacement);
        sketch
    }

    fn and(self, file: &str, text: &str, replacement: &str) -> Self {
        self.replace(file, text, replacement);
        self
    }

    /// The contract as if its package had another version.
    fn of_version(version: &str) -> Self {
        let package = "package recollex:memory@0.1.0;";
        let mut sketch = Self::with("types.wit", package, &format!("package recollex:memory@{version};"));
        for file in ["archive-view", "lock", "log", "model", "store", "workspace", "turns", "worlds"] {
            sketch = sketch.and(&format!("{file}.wit"), package, &format!("package recollex:memory@{version};"));
        }
        sketch
    }

    fn wit(&self) -> PathBuf {
        self.directory.path().join("wit")
    }

    fn copy(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                self.copy(&path, &target);
            } else {
                fs::copy(&path, &target).unwrap();
            }
        }
    }

    fn replace(&self, file: &str, text: &str, replacement: &str) {
        let path = self.wit().join(file);
        let old = fs::read_to_string(&path).unwrap();
        assert!(old.contains(text), "{file} has no {text:?}: adapt this test");
        fs::write(&path, old.replacen(text, replacement, 1)).unwrap();
    }

    fn component(&self) -> PathBuf {
        let (resolve, package) = parse(&self.wit());
        let world = world(&resolve, package, "memory");
        let mut module = wit_component::dummy_module(&resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
        wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
        let bytes = ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap();
        let path = self.directory.path().join("sketch.wasm");
        fs::write(&path, bytes).unwrap();
        path
    }

    /// What the host says to it. Opening a session calls into the component, where the sketch traps: whoever gets so
    /// far has linked it.
    fn load(&self) -> Result<Loaded, Error> {
        let options = RuntimeOptions { memory_component: Some(self.component()), ..RuntimeOptions::default() };
        let runtime = Runtime::new(options)?;
        let root = self.directory.path().join("workspace");
        match Session::open(&runtime, &root, OpenOptions::new(Tier::Owner)) {
            Err(Error::Trap { .. }) => Ok(Loaded::Called),
            Err(other) => Err(other),
            Ok(_) => panic!("the sketch answered"),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Loaded {
    /// It was instantiated and called.
    Called,
}

#[track_caller]
fn refused(sketch: &Sketch, names: &[&str]) {
    let error = sketch.load().expect_err("the host took it");
    assert!(matches!(error, Error::Version { .. }), "{error:?}");
    let message = error.to_string();
    for name in names {
        assert!(message.contains(name), "the message names no {name}: {message}");
    }
}

#[test]
fn an_unchanged_sketch_links() {
    // Otherwise the refusals below would prove nothing.
    let sketch = Sketch::with("log.wit", "interface log {", "interface log {");
    assert_eq!(sketch.load().unwrap(), Loaded::Called);
}

#[test]
fn a_newer_component_with_more_exports_links() {
    let function = Sketch::with(
        "workspace.wit",
        "init: func() -> result<initialised, error>;",
        "init: func() -> result<initialised, error>;\n later: func(text: string) -> u32;",
    );
    assert_eq!(function.load().unwrap(), Loaded::Called);

    let interface = Sketch::with(
        "worlds.wit",
        "export workspace;",
        "export workspace;\n export later: interface { later: func() -> string; }",
    );
    assert_eq!(interface.load().unwrap(), Loaded::Called);
}

#[test]
fn another_patch_level_links() {
    assert_eq!(Sketch::of_version("0.1.7").load().unwrap(), Loaded::Called);
}

#[test]
fn an_older_component_that_uses_less_links() {
    let sketch = Sketch::with("worlds.wit", "    @since(version = 0.1.0)\n    import model;\n", "");
    assert_eq!(sketch.load().unwrap(), Loaded::Called);
}

#[test]
fn another_version_is_refused_and_both_are_named() {
    refused(&Sketch::of_version("0.2.0"), &["0.2.0", "0.1.0"]);
    refused(&Sketch::of_version("1.0.0"), &["1.0.0", "0.1.0"]);
}

#[test]
fn an_unknown_import_is_refused_and_named() {
    let interface = Sketch::with("worlds.wit", "import log;", "import log;\n import later;").and(
        "log.wit",
        "interface log {",
        "interface later { later: func() -> u32; }\n\ninterface log {",
    );
    refused(&interface, &["recollex:memory/later@0.1.0"]);

    let function = Sketch::with("log.wit", "interface log {", "interface log {\n later: func() -> u32;");
    refused(&function, &["recollex:memory/log", "later"]);
}

#[test]
fn an_import_of_another_type_is_refused() {
    let sketch =
        Sketch::with("log.wit", "write: func(level: level, message: string);", "write: func(message: string);");
    refused(&sketch, &["recollex:memory/log"]);
}

#[test]
fn a_missing_export_is_refused_and_named() {
    let function = Sketch::with(
        "workspace.wit",
        "status: func() -> result<status, error>;",
        "state: func() -> result<status, error>;",
    );
    refused(&function, &["recollex:memory/workspace"]);

    let interface = Sketch::with("worlds.wit", "    @since(version = 0.1.0)\n    export workspace;\n", "");
    refused(&interface, &["recollex:memory/workspace"]);
}

#[test]
fn what_is_no_component_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("component.wasm");
    for bytes in [&b""[..], b"\0asm\x01\0\0\0", b"not wasm at all", &component(built::memory())[..1000]] {
        fs::write(&path, bytes).unwrap();
        let options = RuntimeOptions { memory_component: Some(path.clone()), ..RuntimeOptions::default() };
        let error = Runtime::new(options).unwrap_err();
        assert!(matches!(error, Error::Component { .. } | Error::Version { .. }), "{error:?}");
    }
}

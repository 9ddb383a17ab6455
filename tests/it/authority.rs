//! Every function of a session is a verb of core's table, turns are one, and the shipped component asks that table.

use std::collections::BTreeSet;

use recollex_core::trust::Verb;
use wit_parser::FunctionKind;

use crate::support::contract;

/// The functions of `resource session` in `wit/workspace.wit`, without the one that makes it; and `turns`, which stands for all that
/// is asked of a session by `wit/turns.wit`.
pub fn session_functions() -> BTreeSet<String> {
    let (resolve, package) = contract();
    let workspace = &resolve.interfaces[resolve.packages[package].interfaces["workspace"]];
    let session = workspace.types["session"];
    let mut functions: BTreeSet<String> = workspace
        .functions
        .values()
        .filter(|function| matches!(function.kind, FunctionKind::Method(resource) if resource == session))
        .map(|function| function.item_name().to_owned())
        .collect();
    assert!(functions.contains("archive"), "{functions:?}: this test no longer sees what it should");
    // What the host says of files. It asks nothing of memory and changes nothing, so nobody needs leave for it.
    assert!(functions.remove("note-changes"), "{functions:?}");
    assert!(resolve.packages[package].interfaces.contains_key("turns"));
    functions.insert("turns".to_owned());
    functions
}

#[test]
fn every_function_of_a_session_is_a_verb() {
    let verbs: BTreeSet<String> = Verb::ALL.iter().map(|verb| verb.name().to_owned()).collect();
    assert_eq!(verbs, session_functions(), "core's table of verbs (left) and wit/workspace.wit (right)");
}

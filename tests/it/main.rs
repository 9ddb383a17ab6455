//! Integration tests, in one binary so that everything is linked once. Each module says what it proves.

mod audience;
mod authority;
mod browser;
mod cli;
mod conformance;
mod contract;
mod crash;
mod damage;
mod ground;
mod hand_edits;
mod history;
mod home;
mod identity;
mod import;
mod import_verb;
mod layers;
mod legacy;
mod limits;
mod machine;
mod promote;
mod python;
mod support;
mod topic_input;
mod topic_properties;
mod update;
mod vectors;

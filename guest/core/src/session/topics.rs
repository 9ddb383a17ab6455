//! What verification tells of topics.
//!
//! Knows faults and findings. Must not know which topics are looked at, or when.

use crate::source::{Finding, FindingCode, Severity};
use crate::text::excerpt;
use crate::topic::edit::{EditFault, EditReason};
use crate::topic::{Check, Fault, ascending};
use crate::views::{CORE_FILE, CORE_TOPIC};

/// What is wrong with a topic: what a strict reading refuses is a warning, for no evidence is out of reach by it, and the rest is
/// worth knowing. `is_block` says whether any topic has a block of that id, and `taken` whether a topic that comes before has: to that the
/// topic yields.
#[must_use]
pub fn topic_findings(
    check: &mut Check<'_>,
    is_block: &dyn Fn(&str) -> bool,
    taken: &dyn Fn(&str) -> bool,
) -> Vec<Finding> {
    check.yield_to(taken);
    let path = check.path().to_string();
    let line_at = |offset: usize| excerpt(check.topic().text().as_bytes().get(offset..).unwrap_or_default());
    let mut findings: Vec<Finding> = Vec::new();
    for fault in check.faults() {
        let subject = check.subject(fault);
        findings.push(Finding {
            code: fault.code.as_str(),
            severity: if fault.code.is_strict() { Severity::Warning } else { Severity::Info },
            path: Some(path.clone()),
            line: Some(fault.line as u64),
            subject: Some(excerpt(subject.as_bytes())),
            excerpt: Some(line_at(fault.span.start)),
            message: format!("{}. {}", fault.code.what(), fault.code.remedy()),
        });
    }
    for block in check.all_blocks() {
        for link in block.paragraph().linked_blocks().filter(|id| !is_block(id)) {
            let lump = block.paragraph().lump();
            findings.push(Finding {
                code: FindingCode::DanglingBlockLink.as_str(),
                severity: FindingCode::DanglingBlockLink.severity(),
                path: Some(path.clone()),
                line: Some(lump.line() as u64),
                subject: Some(excerpt(link.as_bytes())),
                excerpt: Some(excerpt(lump.text().as_str().as_bytes())),
                message: "this links to a block that no topic has. Link to another, or take the link out".to_owned(),
            });
        }
    }
    let lines: Vec<usize> = findings.iter().map(|found| found.line.map_or(0, |line| line as usize)).collect();
    let mut findings: Vec<_> = findings.into_iter().map(Some).collect();
    ascending(&lines).into_iter().filter_map(|at| findings.get_mut(at)?.take()).collect()
}

/// Why a topic that somebody has edited by hand cannot be put in order, where that is no fault of the topic by itself: such are
/// told by [`topic_findings`].
#[must_use]
pub fn unmended(fault: &EditFault) -> Option<Finding> {
    let reason = fault.reason;
    EditReason::OWN.contains(&reason).then(|| Finding {
        code: reason.as_str(),
        severity: Severity::Warning,
        path: Some(fault.path.to_string()),
        line: Some(fault.line as u64),
        subject: Some(excerpt(fault.subject.as_bytes())),
        excerpt: None,
        message: format!("this topic cannot be put in order: {}. {}", reason.what(), reason.remedy()),
    })
}

/// A view that is not what its topics make of it.
#[must_use]
pub fn stale_view(path: &str) -> Finding {
    Finding {
        code: FindingCode::StaleView.as_str(),
        severity: FindingCode::StaleView.severity(),
        path: Some(path.to_owned()),
        line: None,
        subject: None,
        excerpt: None,
        message:
            "this is made of topics, and they say something else by now. `verify --fix` makes it anew, and so does the \
                  next update"
                .to_owned(),
    }
}

/// A `core.md` of hand that is no topic, by its first fault (D28).
#[must_use]
pub fn core_not_a_topic(text: &str, fault: &Fault) -> Finding {
    let line = text.lines().nth(fault.line.saturating_sub(1)).unwrap_or_default();
    Finding {
        code: FindingCode::CoreNotATopic.as_str(),
        severity: FindingCode::CoreNotATopic.severity(),
        path: Some(CORE_FILE.to_owned()),
        line: Some(fault.line as u64),
        subject: None,
        excerpt: Some(excerpt(line.as_bytes())),
        message: format!(
            "this was written by hand and is no topic, so no prompt shows it: {}. {} Then the next update makes it \
             `{CORE_TOPIC}`; or write that topic yourself",
            fault.code.what().trim_end_matches('.'),
            fault.code.remedy()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TopicPath;
    use crate::topic::TopicRef;

    #[test]
    fn faults_are_told_with_their_lines() {
        let text = "# A\n\nA claim with [b](b.md#^gone0000).[^e-1] ^aaaa1111\n\nNothing rests on this.\n\n[^e-1]: Time: `2026`; Sources: [x](p/t/1)\n```\n";
        let path = TopicPath::parse("topics/a.md").expect("a topic");
        let found = topic_findings(&mut Check::new(path, TopicRef::parse(text), &()), &|_| false, &|_| false);
        let told: Vec<_> = found.iter().map(|one| (one.code, one.line, one.severity)).collect();
        let expected = [
            ("dangling-block-link", Some(3), Severity::Warning),
            ("missing-block-id", Some(5), Severity::Warning),
            ("unclosed-fence", Some(8), Severity::Info),
        ];
        assert_eq!(told, expected);
        assert!(found.iter().all(|one| one.path.as_deref() == Some("topics/a.md") && one.excerpt.is_some()));
    }
}

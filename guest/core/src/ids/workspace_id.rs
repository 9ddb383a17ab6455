//! The name a workspace goes by: `w-` and eight hexadecimal digits (FORMAT.md, "Runtime directory").
//!
//! Knows its form. Must not know where randomness comes from.

use core::fmt;

/// A workspace's id. It tells marks of this workspace from those of others, and is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkspaceId(u32);

impl WorkspaceId {
    /// The file's path within the runtime directory.
    pub const PATH: &'static str = "workspace-id";

    /// A new one. `random` must differ from workspace to workspace.
    #[must_use]
    pub fn new(random: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(random))
    }

    /// Reads the file's content, white space around it allowed. None unless it has the form: whoever may write then
    /// replaces it.
    #[must_use]
    pub fn parse(content: &str) -> Option<Self> {
        let digits = content.trim().strip_prefix("w-")?;
        let lower_hex = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() == 8 && lower_hex { u32::from_str_radix(digits, 16).ok().map(Self) } else { None }
    }

    /// The file's content.
    #[must_use]
    pub fn file(self) -> String {
        format!("{self}\n")
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w-{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let id = WorkspaceId::new([0x0a, 0x1b, 0x2c, 0x3d]);
        assert_eq!(id.to_string(), "w-0a1b2c3d");
        assert_eq!(WorkspaceId::parse(&id.file()), Some(id));
        assert_eq!(WorkspaceId::parse("  w-0a1b2c3d  \n"), Some(id));
    }

    #[test]
    fn anything_else_is_none() {
        for content in
            ["", "w-", "w-123", "w-0A1B2C3D", "w-0a1b2c3d4", "x-0a1b2c3d", "w-0a1b2c3g", "w- a1b2c3d", "w-+a1b2c3d"]
        {
            assert_eq!(WorkspaceId::parse(content), None, "{content:?}");
        }
    }
}

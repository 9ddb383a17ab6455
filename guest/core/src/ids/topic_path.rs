//! Where a topic lies.

/// The path of a topic within a workspace: `topics/…/name.md`, relative, no part empty, `.` or `..`, case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicPath(Box<str>);

/// Why a path is no topic's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicPathError {
    /// It is absolute, or has a part `..`.
    #[error("the path leads out of the workspace; give it relative to the workspace, without ..")]
    Outside,
    /// It lies elsewhere in the workspace, or does not end in `.md`.
    #[error("a topic is topics/….md; nothing else of a workspace can be edited")]
    NotATopic,
}

const ROOT: &str = "topics/";

impl TopicPath {
    /// Reads a path as callers give it: parts that are empty or `.` are left out, so that `./topics//a.md` is
    /// `topics/a.md`.
    ///
    /// # Errors
    /// [`TopicPathError`].
    pub fn parse(text: &str) -> Result<Self, TopicPathError> {
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err(TopicPathError::Outside);
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let path = parts.join("/");
        let topic = path.strip_prefix(ROOT).is_some_and(|below| !below.is_empty()) && path.ends_with(".md");
        // A path that ends in a slash names a directory; no file has a zero byte in its name.
        if !topic || text.ends_with('/') || text.contains('\0') {
            return Err(TopicPathError::NotATopic);
        }
        Ok(Self(path.into()))
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path below `topics/`: how topics name each other in messages and in derived files.
    pub fn below_topics(&self) -> &str {
        self.0.get(ROOT.len()..).unwrap_or_default()
    }

    /// The file's name: its last part.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The path in a workspace that a relative path in this topic leads to, without `.` and `..`. None if it is absolute
    /// or leads out of the workspace. The empty path is the directory the topic lies in.
    pub fn join(&self, relative: &str) -> Option<String> {
        if relative.starts_with('/') {
            return None;
        }
        let directory = self.0.get(..self.0.rfind('/')?)?;
        let mut path = String::with_capacity(directory.len() + 1 + relative.len());
        path.push_str(directory);
        for part in relative.split('/') {
            match part {
                "" | "." => {}
                ".." if path.is_empty() => return None,
                ".." => path.truncate(path.rfind('/').unwrap_or(0)),
                name => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(name);
                }
            }
        }
        Some(path)
    }

    /// The shortest relative path that leads from this topic to a file of the workspace: the inverse of
    /// [`TopicPath::join`].
    pub fn relative(&self, path: &str) -> String {
        let mut here: Vec<&str> = self.0.split('/').collect();
        here.pop();
        let there: Vec<&str> = path.split('/').collect();
        // The file's own name is no directory to share.
        let shared = here.iter().zip(there.iter().take(there.len() - 1)).take_while(|(a, b)| a == b).count();
        let up = std::iter::repeat_n("..", here.len() - shared);
        up.chain(there.iter().skip(shared).copied()).collect::<Vec<_>>().join("/")
    }
}

/// By parts, as files are taken.
impl Ord for TopicPath {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        super::path_order(&self.0, &other.0)
    }
}

impl PartialOrd for TopicPath {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl core::fmt::Display for TopicPath {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TopicPath {
        TopicPath::parse(text).expect(text)
    }

    #[test]
    fn given_paths() {
        for text in ["topics/a.md", "./topics/a.md", "topics//a.md", "topics/./a.md", "topics/a b/%20/你.md"] {
            assert!(path(text).as_str().starts_with(ROOT), "{text}");
        }
        assert_eq!(path("./topics//x/a.md").as_str(), "topics/x/a.md");
        assert_eq!(path("topics/x/a.md").below_topics(), "x/a.md");
        assert_eq!(path("topics/x/a.md").name(), "a.md");
        for text in ["/topics/a.md", "topics/../a.md", "..", "topics/..", "../topics/a.md"] {
            assert_eq!(TopicPath::parse(text), Err(TopicPathError::Outside), "{text}");
        }
        for text in [
            "",
            "topics",
            "topics/",
            "topics/a",
            "topics/a.MD",
            "Topics/a.md",
            " topics/a.md",
            "topics/a.md ",
            "core.md",
            "sources/a.md",
            "topics.md",
            "topics/a.md/",
            "topics/a\0.md",
        ] {
            assert_eq!(TopicPath::parse(text), Err(TopicPathError::NotATopic), "{text:?}");
        }
    }

    #[test]
    fn joining() {
        for (relative, joined) in [
            ("b.md", Some("topics/x/b.md")),
            ("", Some("topics/x")),
            ("../../sources/D1.md", Some("sources/D1.md")),
            ("./../y/./z.md", Some("topics/y/z.md")),
            ("../..", Some("")),
            ("../../..", None),
            ("/topics/a.md", None),
        ] {
            assert_eq!(path("topics/x/a.md").join(relative).as_deref(), joined, "{relative}");
        }
    }

    #[test]
    fn relative_paths() {
        for (from, to, relative) in [
            ("topics/a.md", "topics/b.md", "b.md"),
            ("topics/a.md", "topics/x/b.md", "x/b.md"),
            ("topics/x/a.md", "topics/b.md", "../b.md"),
            ("topics/x/y/a.md", "sources/p/_v2/t.md", "../../../sources/p/_v2/t.md"),
            ("topics/x/a.md", "topics/x/a.md", "a.md"),
            ("topics/x/a.md", "topics/x", "../x"),
        ] {
            assert_eq!(path(from).relative(to), relative);
            assert_eq!(path(from).join(relative).as_deref(), Some(to));
        }
    }

    #[test]
    fn order_is_by_parts() {
        assert!(path("topics/a/z.md") < path("topics/a-b.md") && path("topics/a-b.md") < path("topics/a.md"));
    }
}

//! What a file seems to be, by its beginning: so that the wrong format, or a file that has to be unpacked first, is told
//! before anything is taken in.
//!
//! Knows signatures and the keys that only one format has. Must not know what the keys mean, and decides nothing that the
//! component does not decide anew: a beginning that tells nothing is for it to refuse.

use recollex::workspace::ImportFormat;

/// So much of a file is looked at.
pub const BEGINNING_BYTES: usize = 64 << 10;

/// What a beginning tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// An export of this format.
    Export(ImportFormat),
    /// A zip archive.
    Zip,
    /// Compressed, in a way that has to be undone first: its name.
    Compressed(&'static str),
    /// Text in another encoding: its name.
    Encoded(&'static str),
    /// A web page.
    Html,
}

/// What a file that begins so seems to be; none if that cannot be told.
pub fn looks(beginning: &[u8]) -> Option<Looks> {
    let signatures: [(&[u8], Looks); 9] = [
        (b"PK\x03\x04", Looks::Zip),
        (b"PK\x05\x06", Looks::Zip),
        (b"\x1f\x8b", Looks::Compressed("gzip")),
        (b"BZh", Looks::Compressed("bzip2")),
        (b"\xfd7zXZ\0", Looks::Compressed("xz")),
        (b"\x28\xb5\x2f\xfd", Looks::Compressed("zstd")),
        (b"7z\xbc\xaf\x27\x1c", Looks::Compressed("7z")),
        (b"\xff\xfe", Looks::Encoded("UTF-16")),
        (b"\xfe\xff", Looks::Encoded("UTF-16")),
    ];
    if let Some((_, looks)) = signatures.iter().find(|(signature, _)| beginning.starts_with(signature)) {
        return Some(*looks);
    }
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    if text.first() == Some(&b'<') {
        return Some(Looks::Html);
    }
    let keys = Keys::of(text)?;
    let has = |name: &str| keys.found.contains(&name.as_bytes());
    let format = if has("mapping") && (has("current_node") || has("title") || has("create_time")) {
        ImportFormat::Chatgpt
    } else if has("chat_messages") {
        ImportFormat::Claude
    } else if has("parentUuid") || has("leafUuid") || has("sessionId") {
        ImportFormat::ClaudeCode
    } else if has("predecessor") && has("seq") {
        ImportFormat::Openprogram
    } else if !keys.in_list && has("role") && has("text") && has("id") {
        ImportFormat::Jsonl
    } else {
        return None;
    };
    Some(Looks::Export(format))
}

/// What the command calls a format.
pub fn name(format: ImportFormat) -> &'static str {
    match format {
        ImportFormat::Chatgpt => "chatgpt",
        ImportFormat::Claude => "claude",
        ImportFormat::ClaudeCode => "claude-code",
        ImportFormat::Openprogram => "openprogram",
        ImportFormat::Jsonl => "jsonl",
    }
}

/// What people call it.
pub fn title(format: ImportFormat) -> &'static str {
    match format {
        ImportFormat::Chatgpt => "a ChatGPT export",
        ImportFormat::Claude => "a Claude export",
        ImportFormat::ClaudeCode => "a session of Claude Code",
        ImportFormat::Openprogram => "a node of an OpenProgram session",
        ImportFormat::Jsonl => "JSON Lines of turns",
    }
}

/// Keys of the objects that a JSON text consists of: of a list's items, or of one object behind another.
struct Keys<'a> {
    in_list: bool,
    found: Vec<&'a [u8]>,
}

/// More are not looked at, nor longer ones.
const KEYS_MAX: usize = 256;
const KEY_BYTES_MAX: usize = 32;

impl<'a> Keys<'a> {
    /// None if the text begins with neither a list nor an object. What is not JSON further on gives keys that are none
    /// of ours, or none.
    fn of(text: &'a [u8]) -> Option<Self> {
        let in_list = match text.first()? {
            b'[' => true,
            b'{' => false,
            _ => return None,
        };
        let level = if in_list { 2 } else { 1 };
        let mut keys = Self { in_list, found: Vec::new() };
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(byte) = text.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let end = string_end(text, at);
                    let behind = text.get(end + 1..).unwrap_or_default().trim_ascii_start();
                    if depth == level && behind.first() == Some(&b':') {
                        keys.add(text.get(at..end).unwrap_or_default());
                    }
                    at = end + 1;
                }
                _ => {}
            }
            if keys.found.len() >= KEYS_MAX {
                break;
            }
        }
        Some(keys)
    }

    fn add(&mut self, key: &'a [u8]) {
        if key.len() <= KEY_BYTES_MAX && !self.found.contains(&key) {
            self.found.push(key);
        }
    }
}

/// Where the string ends that began before `at`; the text's end where it does not.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_known_by_its_own_keys() {
        for (text, format) in [
            (r#"[{"title":null,"create_time":1.5,"mapping":{"a":{"id":"a"}}}]"#, ImportFormat::Chatgpt),
            (r#"  [ { "mapping" : {}, "current_node" : "x" } ]"#, ImportFormat::Chatgpt),
            (r#"[{"uuid":"u","name":"","chat_messages":[{"text":"mapping"}]}]"#, ImportFormat::Claude),
            (r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user"}"#, ImportFormat::ClaudeCode),
            ("{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}\n{}", ImportFormat::ClaudeCode),
            (
                r#"{"id":"a","created_at":1,"seq":1,"role":"user","predecessor":null,"metadata":{}}"#,
                ImportFormat::Openprogram,
            ),
            ("\u{feff}{\"id\":\"m\",\"role\":\"user\",\"text\":\"x\"}\n", ImportFormat::Jsonl),
        ] {
            assert_eq!(looks(text.as_bytes()), Some(Looks::Export(format)), "{text}");
        }
    }

    #[test]
    fn a_key_further_in_or_in_a_text_tells_nothing() {
        for text in [
            r#"[{"a":{"chat_messages":[]}}]"#,
            r#"[{"a":"\"chat_messages\":"}]"#,
            r#"{"a":["sessionId","b"]}"#,
            r#"["chat_messages"]"#,
            r#"[{"role":"user","text":"x","id":"m"}]"#,
            "",
            "   ",
            "[",
            "{",
            "{\"",
            "{\"\\",
            "hello",
            "\u{0}\u{0}\u{0}",
            "[[[[[[",
            "}}}}{\"chat_messages\":1}",
        ] {
            assert_eq!(looks(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn packed_and_foreign_files_are_known_by_their_signatures() {
        assert_eq!(looks(b"PK\x03\x04rest"), Some(Looks::Zip));
        assert_eq!(looks(b"\x1f\x8b\x08"), Some(Looks::Compressed("gzip")));
        assert_eq!(looks(b"\xff\xfe[\0"), Some(Looks::Encoded("UTF-16")));
        assert_eq!(looks(b"\n<!DOCTYPE html>"), Some(Looks::Html));
    }

    #[test]
    fn a_beginning_may_be_cut_anywhere() {
        let whole = "[{\"uuid\":\"\\u00e9喷\",\"chat_messages\":[{\"text\":\"a \\\"b\\\" c\"}]}]".as_bytes();
        for end in 0..=whole.len() {
            let told = looks(&whole[..end]);
            assert!(matches!(told, None | Some(Looks::Export(ImportFormat::Claude))), "{end}: {told:?}");
        }
        // However deep, and however many keys.
        assert_eq!(looks("[".repeat(100_000).as_bytes()), None);
        let many: String = (0..10_000).map(|n| format!("\"k{n}\":1,")).collect();
        assert_eq!(looks(format!("{{{many}\"sessionId\":1}}").as_bytes()), None);
    }
}

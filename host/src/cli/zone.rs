//! The time zone of this machine, by its name.
//!
//! Knows where systems keep it. Whether there is a zone of that name is the component's to say: it has the zones with it,
//! so that the same is written everywhere.

use std::path::Path;

/// The name that `TZ` gives, or else the link `/etc/localtime`; none if neither says it. What cannot be the name of a
/// zone (`TZ` may also hold a rule, such as `CET-1CEST`) is given as it is.
pub fn of_system(tz: Option<&str>, localtime: Option<&Path>) -> Option<String> {
    let given = match tz {
        // A colon before it says that it is a name.
        Some(tz) => tz.strip_prefix(':').unwrap_or(tz),
        None => localtime?.to_str()?,
    };
    let name = given.rsplit_once("zoneinfo/").map_or(given, |(_, name)| name);
    // The same zones with and without leap seconds lie in directories of their own.
    let name = name.strip_prefix("posix/").or_else(|| name.strip_prefix("right/")).unwrap_or(name);
    (!name.is_empty() && !name.starts_with('/')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_what_follows_the_directory_of_zones() {
        let link = |to: &str| of_system(None, Some(Path::new(to)));
        assert_eq!(link("/usr/share/zoneinfo/Europe/Berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(link("../usr/share/zoneinfo/posix/UTC").as_deref(), Some("UTC"));
        assert_eq!(link("/etc/localtime.saved"), None);
        assert_eq!(of_system(None, None), None);
    }

    #[test]
    fn tz_comes_first() {
        let with = |tz: &str| of_system(Some(tz), Some(Path::new("/usr/share/zoneinfo/Asia/Tokyo")));
        assert_eq!(with("Europe/Berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(with(":Europe/Berlin").as_deref(), Some("Europe/Berlin"));
        assert_eq!(with("/usr/share/zoneinfo/Asia/Seoul").as_deref(), Some("Asia/Seoul"));
        assert_eq!(with("CET-1CEST").as_deref(), Some("CET-1CEST"));
        assert_eq!(with("/srv/zone"), None);
    }
}

//! Names of errno values, for `ignore_error` and for error messages.

use crate::value::{ParsedValue, ValueError};

/// Linux's errno values from 1 to 34, in order.
const NAMES: &[&str] = &[
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];

/// Aliases, and the errno values above 34 that storage returns.
const LATER: &[(&str, i32)] = &[
    ("EWOULDBLOCK", 11),
    ("EDEADLK", 35),
    ("ENAMETOOLONG", 36),
    ("ENOLCK", 37),
    ("ENOSYS", 38),
    ("ELOOP", 40),
    ("ENODATA", 61),
    ("ETIME", 62),
    ("ENOLINK", 67),
    ("EPROTO", 71),
    ("EBADMSG", 74),
    ("EOVERFLOW", 75),
    ("EILSEQ", 84),
    ("EBADE", 52),
    ("ECOMM", 70),
    ("EOPNOTSUPP", 95),
    ("EADDRINUSE", 98),
    ("ENETDOWN", 100),
    ("ENETUNREACH", 101),
    ("ECONNABORTED", 103),
    ("ECONNRESET", 104),
    ("ENOBUFS", 105),
    ("ENOTCONN", 107),
    ("ESHUTDOWN", 108),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTDOWN", 112),
    ("EHOSTUNREACH", 113),
    ("EALREADY", 114),
    ("EINPROGRESS", 115),
    ("ESTALE", 116),
    ("EUCLEAN", 117),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
    ("ENOMEDIUM", 123),
    ("EMEDIUMTYPE", 124),
    ("ECANCELED", 125),
];

/// Returns every errno value with its name. The usual name precedes an alias.
fn list_errnos() -> impl Iterator<Item = (i32, &'static str)> {
    let early = NAMES.iter().zip(1..).map(|(name, number)| (number, *name));
    early.chain(LATER.iter().map(|(name, number)| (*number, *name)))
}

/// Parses an errno value from its name or its digits.
pub fn errno(text: &str) -> ParsedValue<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return match number {
            1..=4095 => Ok(number),
            _ => Err(ValueError::new(format!("{number} is not an error number"))),
        };
    }
    list_errnos()
        .find(|(_, name)| *name == text)
        .map(|(number, _)| number)
        .ok_or_else(|| {
            ValueError::new(format!("`{text}` is not the name of an error"))
                .help("write a name such as EIO or ENOSPC, or its number")
        })
}

/// Parses `READ,WRITE,VERIFY` lists of errors, each separated by colons.
pub(crate) fn errno_lists(text: &str) -> ParsedValue<[Vec<i32>; 3]> {
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    let fields: Vec<&str> = text.split(',').collect();
    if fields.len() > 3 {
        return Err(ValueError::new("more than three lists")
            .help("give the errors of reads, of writes and of verification"));
    }
    for (list, field) in lists.iter_mut().zip(fields) {
        for name in field.split(':').filter(|name| !name.is_empty()) {
            list.push(errno(name.trim()).map_err(|error| error.within(text, name.trim()))?);
        }
    }
    Ok(lists)
}

/// Returns the errno's symbolic name, e.g. `ENOSPC`.
pub fn errno_name(errno: i32) -> String {
    list_errnos()
        .find(|(number, _)| *number == errno)
        .map_or_else(|| format!("errno {errno}"), |(_, name)| name.to_owned())
}

/// Describes an error in words, with its errno's name.
pub fn describe(error: &std::io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), describe_errno)
}

/// Describes an errno in words, with its name, e.g. `Input/output error (EIO)`.
pub fn describe_errno(errno: i32) -> String {
    format!("{} ({})", errno_words(errno), errno_name(errno))
}

/// Returns the text of an errno, as strerror(3) does.
pub fn errno_words(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    // The standard library appends the number.
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Operation not permitted.
pub const EPERM: i32 = 1;
/// No such file or directory.
pub const ENOENT: i32 = 2;
/// Resource temporarily unavailable.
pub const EAGAIN: i32 = 11;
/// Cannot allocate memory.
pub const ENOMEM: i32 = 12;
/// Permission denied.
pub const EACCES: i32 = 13;
/// Device or resource busy.
pub const EBUSY: i32 = 16;
/// Invalid argument.
pub const EINVAL: i32 = 22;
/// Too many open files in the system.
pub const ENFILE: i32 = 23;
/// Too many open files.
pub const EMFILE: i32 = 24;
/// No space left on the device.
pub const ENOSPC: i32 = 28;
/// Read-only file system.
pub const EROFS: i32 = 30;
/// Broken pipe.
pub const EPIPE: i32 = 32;
/// Function not implemented.
pub const ENOSYS: i32 = 38;
/// Software caused connection abort.
pub const ECONNABORTED: i32 = 103;
/// Connection reset by peer.
pub const ECONNRESET: i32 = 104;
/// Transport endpoint is not connected.
pub const ENOTCONN: i32 = 107;
/// Connection timed out.
pub const ETIMEDOUT: i32 = 110;
/// Disk quota exceeded.
pub const EDQUOT: i32 = 122;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_errno_has_words_and_name() {
        assert_eq!(describe_errno(ENOENT), "No such file or directory (ENOENT)");
        let error = std::io::Error::from_raw_os_error(EINVAL);
        assert_eq!(describe(&error), "Invalid argument (EINVAL)");
        assert_eq!(describe(&std::io::Error::other("no pages")), "no pages");
    }

    #[test]
    fn errno_constants_have_their_names() {
        let constants = [
            (EPERM, "EPERM"),
            (ENOENT, "ENOENT"),
            (EAGAIN, "EAGAIN"),
            (ENOMEM, "ENOMEM"),
            (EACCES, "EACCES"),
            (EBUSY, "EBUSY"),
            (EINVAL, "EINVAL"),
            (ENFILE, "ENFILE"),
            (EMFILE, "EMFILE"),
            (ENOSPC, "ENOSPC"),
            (EROFS, "EROFS"),
            (EPIPE, "EPIPE"),
            (ENOSYS, "ENOSYS"),
            (ECONNABORTED, "ECONNABORTED"),
            (ECONNRESET, "ECONNRESET"),
            (ENOTCONN, "ENOTCONN"),
        ];
        for (number, name) in constants {
            assert_eq!(errno(name), Ok(number));
        }
    }

    #[test]
    fn errno_names_and_numbers_are_parsed() {
        assert_eq!(errno("EIO"), Ok(5));
        assert_eq!(errno("ERANGE"), Ok(34));
        assert_eq!(errno("122"), Ok(122));
        assert!(errno("EWHAT").is_err());
        let named = |wanted: i32| list_errnos().find(|(number, _)| *number == wanted);
        assert_eq!(named(11), Some((11, "EAGAIN")));
        assert_eq!(named(61), Some((61, "ENODATA")));
        assert_eq!(
            errno_lists("EAGAIN,ENOSPC:122"),
            Ok([vec![11], vec![28, 122], vec![]])
        );
        assert_eq!(errno_lists(",EIO"), Ok([vec![], vec![5], vec![]]));
    }
}
